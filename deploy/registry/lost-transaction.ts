import { Transaction } from 'ethers';
import { messageOf, ServiceError } from '../../service/errors';
import { keepSigned } from '../sending';
import type { DeployContext } from './context';
import { readNote, writeNote, type Journal } from './journals';
import { sentTransactions } from './stale-journal';

/**
 * Notes every transaction that is signed from now on, before it is sent: Ignition knows one only by the node's answer, and a run that ends
 * before that leaves it with a transaction that may or may not be on its way.
 */
export function noteSigned({ hre }: DeployContext, journal: Journal): void {
  keepSigned(hre, (raw) => {
    const note = readNote(journal);
    if (note !== undefined) writeNote(journal, { ...note, signed: [...(note.signed ?? []), raw] });
  });
}

/** Whether an earlier run has sent something, or was about to. */
export async function hasBegun({ hre }: DeployContext, journal: Journal): Promise<boolean> {
  const signed = readNote(journal)?.signed ?? [];
  return signed.length > 0 || ((await sentTransactions(hre, journal)) ?? []).length > 0;
}

/**
 * Makes the journal know what was signed and not answered. Sent again, the same bytes are the same transaction: nothing is paid twice.
 *
 * @throws ServiceError DEPLOYMENT_FAILED when the node has not got it and does not take it.
 */
export async function recoverLost(context: DeployContext, journal: Journal): Promise<void> {
  const { hre } = context;
  const signed = readNote(journal)?.signed ?? [];
  const known = (await sentTransactions(hre, journal)) ?? [];
  for (const raw of signed) {
    const { hash } = Transaction.from(raw);
    if (hash === null || known.includes(hash)) continue;
    await sendAgain(context, journal, raw, hash);
    const { trackTransaction } = await import('@nomicfoundation/ignition-core');
    await trackTransaction(journal.folder, hash, hre.network.provider);
  }
}

async function sendAgain(
  { request, target }: DeployContext,
  { folder }: Journal,
  raw: string,
  hash: string,
): Promise<void> {
  const isThere = async (): Promise<boolean> => (await request('eth_getTransactionByHash', [hash])) !== null;
  if (await isThere()) return;
  const refusal = await request('eth_sendRawTransaction', [raw]).then(() => undefined, messageOf);
  if (await isThere()) return;
  const reason = refusal ?? 'it does not know it afterwards';
  const message = `The node of ${target.name} does not take the transaction ${hash}, signed by an earlier run: ${reason}.`;
  const remedy =
    'Do away with the reason and run the command again: the same transaction is sent. If the wallet has used its nonce for another one, ' +
    `it never will be: make another registry with --new, or begin anew by deleting ${folder}.`;
  throw new ServiceError('DEPLOYMENT_FAILED', message, { remedy });
}
