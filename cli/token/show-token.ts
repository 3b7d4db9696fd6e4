import { ConfigurationError } from '../../service/base/errors';
import { readTokenHistory, type TokenHistory } from '../../service/token/read-token-history';
import { findToken, type FoundToken, type TokenReference } from './find-token';
import { withRegistry } from './reach-registry';
import { createReadingProgress } from '../terminal/reading-progress';
import { tokenJson, tokenLines } from './token-report';

/** Selects the token and the format. */
export interface ShowTokenOptions extends TokenReference {
  fromBlock: number | undefined;
  json: boolean;
}

/** Lines to print, and whether the token was minted. */
export interface ShownToken {
  lines: string[];
  isMinted: boolean;
}

/** Reads a token's history from its chain and returns the lines to print. */
export async function showToken({ fromBlock, json, ...reference }: ShowTokenOptions): Promise<ShownToken> {
  if (fromBlock !== undefined && fromBlock < 0)
    throw new ConfigurationError('ARGUMENT_INVALID', `--from-block ${fromBlock} is no block.`);
  const found = await findToken(reference);
  const { history, network } = await readHistory(found, fromBlock);
  const isMinted = history.state.state !== 'not minted';
  const lines = json ? [tokenJson(found, history, network)] : tokenLines(found, history, network);
  return { lines, isMinted };
}

const HINT = 'it ends at the mint; --from-block N shortens it';

/**
 * Reads the history of a token from a node of its chain, with progress on standard error if it takes long.
 */
export async function readHistory(
  { location }: FoundToken,
  fromBlock?: number,
): Promise<{ history: TokenHistory; network: string }> {
  return withRegistry(location, async ({ client, bulkClient, registry, network }) => {
    const onProgress = createReadingProgress((line) => console.error(line), HINT);
    const options = { bulkClient, onProgress, ...(fromBlock !== undefined && { fromBlock }) };
    const history = await readTokenHistory(client, registry, location.tokenId, options);
    return { history, network: network.name };
  });
}
