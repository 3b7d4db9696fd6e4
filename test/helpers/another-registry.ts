import { join } from 'node:path';
import { readSettings } from '../../service/config';
import { hardhat } from './hardhat-command';
import type { World } from './world';

/** Deploys one more registry on the world's chain, as a user does, and gives its address. */
export async function deployAnotherRegistry(world: World): Promise<string> {
  const settings = { ...world.settings, ENV_FILE: join(world.folder, 'another-registry.env') };
  await hardhat(['deploy', '--network', 'localhost', '--new'], settings);
  return readSettings(settings).settings.TOKEN_REGISTRY_ADDRESS ?? '';
}
