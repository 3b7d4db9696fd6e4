import { getAddress, ZeroAddress } from 'ethers';
import { RequestError } from '../errors';
import type { JsonObject } from './credential';

/** The body of POST /create/{documentId}, checked. Addresses have their checksum. */
export interface CreateRequest {
  credentialSubject: JsonObject;
  owner: string;
  holder: string;
  remarks: string | undefined;
}

/**
 * Checks the shape of a request body. None of the strict rules for a Bill of Lading are applied: the document
 * leaves those to the author of the credential.
 *
 * @throws RequestError naming the field and what it should be.
 */
export function parseCreateRequest(body: unknown): CreateRequest {
  if (!isObject(body)) throw badField('', 'the body must be a JSON object');
  return {
    credentialSubject: subjectOf(body.credentialSubject),
    owner: addressOf('/owner', body.owner),
    holder: addressOf('/holder', body.holder),
    remarks: remarksOf(body.remarks),
  };
}

function subjectOf(value: unknown): JsonObject {
  if (!isObject(value)) throw badField('/credentialSubject', `must be an object, ${found(value)}`);
  return value;
}

function addressOf(pointer: string, value: unknown): string {
  if (typeof value !== 'string') throw badField(pointer, `must be an account address, ${found(value)}`);
  if (!/^0x[0-9a-fA-F]{40}$/.test(value)) {
    throw badField(pointer, 'must be an account address: 0x and 40 hexadecimal digits');
  }
  const address = checksummed(value);
  if (address === undefined) {
    throw badField(pointer, 'has a wrong checksum: check for a typing error, or write it in lower case');
  }
  if (address === ZeroAddress)
    throw badField(pointer, 'is the zero address: nobody could ever move the token');
  return address;
}

function checksummed(value: string): string | undefined {
  try {
    return getAddress(value);
  } catch {
    return undefined;
  }
}

function remarksOf(value: unknown): string | undefined {
  if (value === undefined || value === null) return undefined;
  if (typeof value !== 'string') throw badField('/remarks', `must be a string, ${found(value)}`);
  return value;
}

function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function found(value: unknown): string {
  if (value === undefined) return 'but it is missing';
  if (value === null) return 'but it is null';
  return `but it is ${Array.isArray(value) ? 'an array' : `a ${typeof value}`}`;
}

function badField(pointer: string, problem: string): RequestError {
  return new RequestError('REQUEST_FIELD_INVALID', `${pointer} ${problem}.`.trim());
}
