import type { IgnitionModule, IgnitionModuleResult } from '@nomicfoundation/ignition-core';
import { ServiceError, messageOf } from '../../service/base/errors';
import type { DeployContext } from './context';
import { noteSigned } from './lost-transaction';
import { dropJournal, readNote, writeNote, type Journal, type JournalNote } from './journals';

/** Local nodes mine at once, or at short intervals. */
const LOCAL_PACE = { requiredConfirmations: 1, blockPollingInterval: 100 };

/**
 * Never raises the fees of a transaction that was sent: they are the gas station's, and were shown to the
 * user. Ignition would give up a deployment for good if it took longer than its timeout.
 */
const PATIENCE = { disableFeeBumping: true, timeBeforeBumpingFees: Number.MAX_SAFE_INTEGER };

/**
 * Runs a module of Hardhat Ignition, which sends what its journal does not have yet. On a local chain a
 * journal that Ignition refuses (an interrupted run, another wallet) is dropped and the module run anew:
 * nothing there is worth keeping.
 *
 * @throws ServiceError DEPLOYMENT_FAILED with Ignition's reason.
 */
export async function runIgnition<Name extends string, Result extends IgnitionModuleResult<string>>(
  context: DeployContext,
  run: {
    module: IgnitionModule<Name, string, Result>;
    journal: Journal;
    parameters?: Record<string, Record<string, string>>;
    note?: Omit<JournalNote, 'node'>;
  },
) {
  const attempt = () => deploy(context, run);
  if (!context.target.isLocal) {
    noteSigned(context, run.journal);
    return attempt().catch((thrown: unknown) => fail(context, thrown));
  }
  return attempt().catch(() => {
    dropJournal(run.journal);
    return attempt().catch((thrown: unknown) => fail(context, thrown));
  });
}

async function deploy<Name extends string, Result extends IgnitionModuleResult<string>>(
  { hre, target, account }: DeployContext,
  { module, journal, parameters, note }: Parameters<typeof runIgnition<Name, Result>>[1],
) {
  // Hardhat's in-process network has no journal: Ignition keeps it in memory.
  if (target.network !== undefined) writeNote(journal, { ...readNote(journal), node: target.node, ...note });
  return hre.ignition.deploy(module, {
    deploymentId: journal.id,
    defaultSender: account,
    ...(parameters && { parameters }),
    config: target.isLocal ? LOCAL_PACE : PATIENCE,
  });
}

function fail({ target, mask }: DeployContext, cause: unknown): never {
  const reason = mask(messageOf(cause)).replace(/\s*\n\s*/g, ' ');
  throw new ServiceError('DEPLOYMENT_FAILED', `The deployment on ${target.name} failed: ${reason}`, {
    cause,
    remedy:
      'Run the command again: it goes on where it stopped. If that does not help, make another registry with --new.',
  });
}
