import { ZeroAddress } from 'ethers';
import { checksummed } from '../base/checksummed';
import { RequestError } from '../base/errors';
import { found } from '../base/found';
import { pointerStep } from '../base/json-pointer';
import { isJsonObject, type JsonObject } from './credential';

/** The checked body of POST /create/{documentId}. Addresses are checksummed. */
export interface CreateRequest {
  credentialSubject: JsonObject;
  owner: string;
  holder: string;
  remarks: string | undefined;
}

const MEMBERS = ['credentialSubject', 'owner', 'holder', 'remarks'];
const ADDRESS = 'Give the address of an account: 0x and 40 hexadecimal digits.';

/** Characters shown of an unknown name, which may be megabytes long. */
const LONGEST_SHOWN = 50;

/**
 * Checks the shape of a request body. The strict rules for a Bill of Lading are not applied: they are for the
 * author of the credential.
 *
 * @throws RequestError REQUEST_FIELD_INVALID, with JSON pointer and remedy in the message.
 */
export function parseCreateRequest(body: JsonObject): CreateRequest {
  // Unknown names are reported first: a misspelt name explains why another is missing.
  refuseUnknown(body);
  return {
    credentialSubject: subjectOf(body.credentialSubject),
    owner: addressOf('/owner', body.owner),
    holder: addressOf('/holder', body.holder),
    remarks: remarksOf(body.remarks),
  };
}

function refuseUnknown(body: JsonObject): void {
  const unknown = Object.keys(body).find((name) => !MEMBERS.includes(name));
  if (unknown === undefined) return;
  const shown = unknown.length > LONGEST_SHOWN ? `${unknown.slice(0, LONGEST_SHOWN)}…` : unknown;
  throw badField(
    pointerStep(shown),
    'is not a known field',
    `Leave it out, or write one of ${MEMBERS.join(', ')}.`,
  );
}

function subjectOf(value: unknown): JsonObject {
  if (isJsonObject(value)) return value;
  throw badField('/credentialSubject', `must be an object, ${found(value)}`, 'Give the content to sign.');
}

function addressOf(pointer: string, value: unknown): string {
  if (typeof value !== 'string') throw badField(pointer, `must be a string, ${found(value)}`, ADDRESS);
  if (!/^0x[0-9a-fA-F]{40}$/.test(value)) throw badField(pointer, 'is not an address', ADDRESS);
  const address = checksummed(value);
  if (address === undefined) {
    const remedy = 'Check for a typing error, or write the address in lower case.';
    throw badField(pointer, 'has a wrong checksum', remedy);
  }
  if (address === ZeroAddress)
    throw badField(pointer, 'is the zero address, from which nobody could move the token', ADDRESS);
  return address;
}

function remarksOf(value: unknown): string | undefined {
  if (value === undefined || value === null) return undefined;
  if (typeof value === 'string') return value;
  throw badField('/remarks', `must be a string, ${found(value)}`, 'Give a text, or leave it out.');
}

function badField(pointer: string, problem: string, remedy: string): RequestError {
  return new RequestError('REQUEST_FIELD_INVALID', `${pointer} ${problem}. ${remedy}`, { remedy });
}
