import type { IgnitionModule, IgnitionModuleResult } from '@nomicfoundation/ignition-core';
import { ServiceError, messageOf } from '../../service/base/errors';
import type { DeployContext } from './context';
import { noteSigned } from './lost-transaction';
import { dropJournal, readNote, writeNote, type Journal, type JournalNote } from './journals';

/** Local nodes mine at once or at short intervals. */
const LOCAL_PACE = { requiredConfirmations: 1, blockPollingInterval: 100 };

/**
 * Fees of a sent transaction are never raised: they come from the gas station and were shown to the user. The
 * timeouts are endless because Ignition would give up a deployment for good after its timeout.
 */
const PATIENCE = { disableFeeBumping: true, timeBeforeBumpingFees: Number.MAX_SAFE_INTEGER };

/**
 * Runs a module of Hardhat Ignition, which sends the transactions that its journal does not have yet. If
 * Ignition refuses a journal of a local chain (an interrupted run, another wallet), the journal is dropped
 * and the module runs again: nothing on such a chain is worth keeping.
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
      'Run the command again: it continues where it stopped. ' +
      'If that does not help, make another registry with --new.',
  });
}
