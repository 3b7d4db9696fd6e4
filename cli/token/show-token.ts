import type { Time } from '../../service/base/time';
import { remarkView, timeOf } from '../../service/answers/token-view';
import { decryptRemark } from '../../service/issuance/remarks';
import { readTokenHistory, type TokenHistory } from '../../service/token/read-token-history';
import { tell, type Answer } from '../answer';
import { readJsonInput } from '../files/user-file';
import { createReadingProgress } from '../terminal/dialog';
import { findToken, requireCredentialId, tokenOf, withRegistry, type FoundToken } from './find-token';
import { printRemark, tokenJson, tokenLines } from './token-report';

/** The options of `tdoc token`. */
export interface ShowTokenOptions {
  registry?: string;
  network?: string;
  fromBlock?: number;
}

/** Reads a token's history from its chain. The answer is no if the token is not minted. */
export async function showToken(time: Time, token: string, options: ShowTokenOptions): Promise<Answer> {
  const found = await findToken({ token, ...options });
  const { history, network } = await readHistory(time, found, options.fromBlock);
  return {
    lines: tokenLines(found, history, network),
    json: tokenJson(found, history, network),
    isYes: history.state.state !== 'not minted',
  };
}

/**
 * Decrypts a remark, or all remarks of the token on its chain, with the id of the credential in a file. The
 * answer is no if this credential decrypts none.
 *
 * @param options `remark`: the one to decrypt.
 */
export async function showRemarks(
  time: Time,
  file: string,
  { remark }: { remark?: string },
): Promise<Answer> {
  const found = tokenOf(await readJsonInput(file));
  const credentialId = requireCredentialId(found);
  if (remark !== undefined) {
    return {
      lines: [printRemark(remark, credentialId) || 'no remark'],
      json: remarkView(remark, credentialId),
      isYes: decryptRemark(remark, credentialId).kind !== 'undecipherable',
    };
  }
  const { endorsements } = (await readHistory(time, found)).history;
  const lines = endorsements.map(({ timestamp, operation, remark: hex }) => {
    const text = printRemark(hex, credentialId) || 'no remark';
    return `${timeOf(timestamp)}  ${operation.padEnd(25)}  ${text}`;
  });
  return {
    lines: lines.length > 0 ? lines : ['The token is not minted.'],
    json: endorsements.map(({ timestamp, operation, transactionHash, remark: hex }) => {
      return { time: timeOf(timestamp), operation, transactionHash, ...remarkView(hex, credentialId) };
    }),
    isYes: lines.length > 0,
  };
}

const HINT = 'it ends at the mint; --from-block N shortens it';

/**
 * Reads the history of a token from a node of its chain, with progress on standard error if it takes long.
 */
async function readHistory(
  time: Time,
  { location }: FoundToken,
  fromBlock?: number,
): Promise<{ history: TokenHistory; network: string }> {
  return withRegistry(time, location, async ({ client, bulkClient, registry, network }) => {
    const onProgress = createReadingProgress(tell, HINT);
    const options = { bulkClient, onProgress, ...(fromBlock !== undefined && { fromBlock }) };
    const history = await readTokenHistory(client, registry, location.tokenId, options);
    return { history, network: network.name };
  });
}
