import { registryOf } from '../token/find-token';
import type { Answer, Say } from '../answer';
import { carryOut, nothingToDo, type AdminAction } from './carry-out';
import { keyForRegistry } from './find-key';
import { asAdmin } from './registry-admin';
import { remarkOf } from './remark';

/** `credential`: a file; the id of the credential in it is the key of the remark. */
export interface SetPausedOptions {
  registry: string | undefined;
  network: string | undefined;
  remark: string | undefined;
  credential: string | undefined;
}

/** Pauses or unpauses a registry. Nothing is sent if it already is in that state. */
export async function setPaused(
  command: 'pause' | 'unpause',
  { registry, network, remark: text, credential }: SetPausedOptions,
  say: Say,
): Promise<Answer> {
  const place = registryOf(registry, network);
  const found = credential === undefined ? undefined : await keyForRegistry(credential, place);
  const remark = remarkOf(text, { found, flag: credential });
  return asAdmin(place, async (admin) => {
    const action: AdminAction<{ isPaused: boolean }> = {
      name: command,
      doing: `${command} the registry`,
      method: command,
      args: [remark.hex],
      about: {},
      remark,
      read: async (block) => ({ isPaused: await admin.contract.paused({ blockTag: block ?? 'latest' }) }),
      isDone: ({ isPaused }) => isPaused === (command === 'pause'),
      describe: ({ isPaused }) => (isPaused ? 'the registry is paused.' : 'the registry is not paused.'),
    };
    const before = await action.read();
    return action.isDone(before) ? nothingToDo(admin, action, before) : carryOut(admin, action, say);
  });
}
