import { Transaction } from 'ethers';
import { messageOf, ServiceError } from '../../service/base/errors';
import { keepSigned } from '../sending';
import type { DeployContext } from './context';
import { plannedTransactions, readNote, writeNote, type Journal } from './journals';
import { sentTransactions } from './stale-journal';

/**
 * Records every transaction from now on when it is signed, before it is sent. Ignition learns a transaction's
 * hash only from the node's answer: if a run ends before the answer, Ignition cannot tell whether it was
 * sent.
 */
export function noteSigned({ hre }: DeployContext, journal: Journal): void {
  keepSigned(hre, (raw) => {
    const note = readNote(journal);
    if (note !== undefined) writeNote(journal, { ...note, signed: [...(note.signed ?? []), raw] });
  });
}

/** Whether an earlier run has sent a transaction, or was about to. */
export async function hasBegun({ hre }: DeployContext, journal: Journal): Promise<boolean> {
  const signed = readNote(journal)?.signed ?? [];
  return signed.length > 0 || ((await sentTransactions(hre, journal)) ?? []).length > 0;
}

/** Errors of nodes for a transaction whose gas price is too low, except for a replacement. */
const OFFERS_TOO_LITTLE = /^(?!.*replacement).*(underpriced|(fee|tip|price).*(too ?low|less than|below))/is;

/**
 * Adds transactions to the journal that were signed but never answered. They are sent again: the same bytes
 * are the same transaction, so nothing is paid twice. A transaction that now offers less than the chain
 * requires is forgotten: the next one takes its nonce, so at most one of the two is ever mined.
 *
 * @throws ServiceError DEPLOYMENT_FAILED if the node neither has the transaction nor accepts it.
 */
export async function recoverLost(context: DeployContext, journal: Journal): Promise<void> {
  const { hre, target } = context;
  if (target.isLocal) return;
  const signed = readNote(journal)?.signed ?? [];
  const known = (await sentTransactions(hre, journal)) ?? [];
  for (const raw of signed) {
    const transaction = Transaction.from(raw);
    const { hash } = transaction;
    if (hash === null || known.includes(hash)) continue;
    const refusal = await sendAgain(context, raw, hash);
    if (refusal !== undefined) {
      const isTooCheap = OFFERS_TOO_LITTLE.test(refusal) && (await isNonceFree(context, transaction));
      if (!isTooCheap) throw refused(context, journal, hash, refusal);
      forget(journal, raw);
      continue;
    }
    const { trackTransaction } = await import('@nomicfoundation/ignition-core');
    await trackTransaction(journal.folder, hash, hre.network.provider);
  }
  await forgetUnsigned(context, journal);
}

/** The node's reason for rejecting the transaction. Undefined if the node has it. */
async function sendAgain({ request }: DeployContext, raw: string, hash: string): Promise<string | undefined> {
  const isThere = async (): Promise<boolean> => (await request('eth_getTransactionByHash', [hash])) !== null;
  if (await isThere()) return undefined;
  const refusal = await request('eth_sendRawTransaction', [raw]).then(() => undefined, messageOf);
  return (await isThere()) ? undefined : (refusal ?? 'the node does not have it afterwards');
}

async function isNonceFree({ request, account }: DeployContext, { nonce }: Transaction): Promise<boolean> {
  return Number(await request('eth_getTransactionCount', [account, 'pending'])) <= nonce;
}

function forget(journal: Journal, raw: string): void {
  const note = readNote(journal);
  const signed = note?.signed?.filter((other) => other !== raw) ?? [];
  if (note !== undefined) writeNote(journal, { ...note, signed });
}

/**
 * Ignition gives up a deployment for good if one of its transactions may be under way. A transaction that was
 * never signed cannot be: the plan for it is removed, so that Ignition makes it again.
 */
async function forgetUnsigned({ hre }: DeployContext, journal: Journal): Promise<void> {
  const signed = (readNote(journal)?.signed ?? []).map((raw) => Transaction.from(raw).nonce);
  const { wipe } = await import('@nomicfoundation/ignition-core');
  const { HardhatArtifactResolver } = await import('@nomicfoundation/hardhat-ignition/helpers');
  for (const { futureId, nonce } of plannedTransactions(journal)) {
    if (!signed.includes(nonce)) await wipe(journal.folder, new HardhatArtifactResolver(hre), futureId);
  }
}

function refused({ target }: DeployContext, { folder }: Journal, hash: string, reason: string): ServiceError {
  const { name } = target;
  const message = `The node of ${name} rejects the transaction ${hash}, signed by an earlier run: ${reason}.`;
  const remedy =
    'Fix the cause and run the command again: it sends the same transaction. ' +
    'If the wallet has used its nonce for another one, ' +
    `it can never be mined: make another registry with --new, or start over by deleting ${folder}.`;
  return new ServiceError('DEPLOYMENT_FAILED', message, { remedy });
}
