import { decryptRemark } from '../../service/issuance/remarks';
import { readJsonInput } from '../files/user-file';
import { printableJson } from '../terminal/printable';
import { requireCredentialId, tokenOf } from './find-token';
import { printRemark, remarkJson } from './print-remark';
import { readHistory } from './show-token';
import { timeOf } from './token-report';

/** `remark`: the one to decrypt. Undefined: all remarks of the token on its chain. */
export interface ShowRemarksOptions {
  file: string;
  remark: string | undefined;
  json: boolean;
}

/** Lines to print, and whether a remark was readable or there was none. */
export interface ShownRemarks {
  lines: string[];
  isReadable: boolean;
}

/** Decrypts the given remark, or those of the token, with the id of the credential in the file. */
export async function showRemarks({ file, remark, json }: ShowRemarksOptions): Promise<ShownRemarks> {
  const input = await readJsonInput(file);
  const found = tokenOf(input);
  const credentialId = requireCredentialId(found);
  if (remark !== undefined) {
    const isReadable = decryptRemark(remark, credentialId).kind !== 'undecipherable';
    const text = printRemark(remark, credentialId) || 'no remark';
    return { lines: [json ? printableJson(remarkJson(remark, credentialId)) : text], isReadable };
  }
  const { history } = await readHistory(found);
  const { endorsements } = history;
  const entries = endorsements.map(({ timestamp, operation, remark: hex, transactionHash }) => ({
    time: timeOf(timestamp),
    operation,
    transactionHash,
    ...remarkJson(hex, credentialId),
  }));
  if (json) return { lines: [printableJson(entries)], isReadable: entries.length > 0 };
  const lines = entries.map(
    ({ time, operation, remark: hex }) =>
      `${time}  ${operation.padEnd(25)}  ${printRemark(hex, credentialId) || 'no remark'}`,
  );
  return { lines: lines.length > 0 ? lines : ['The token is not minted.'], isReadable: lines.length > 0 };
}
