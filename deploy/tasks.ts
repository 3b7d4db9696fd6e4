import { spawnSync } from 'node:child_process';
import { inspect } from 'node:util';
import { TASK_TEST } from 'hardhat/builtin-tasks/task-names';
import { subtask, task } from 'hardhat/config';
import { HardhatPluginError } from 'hardhat/plugins';
import type { HardhatRuntimeEnvironment } from 'hardhat/types';
import { errorText } from '../cli/errors';
import { runTdoc } from '../cli/program';
import { ServiceError } from '../service/base/errors';
import { systemTime } from '../service/base/time';
import { readSettings } from '../service/config/config';
import { deploy, type Wanted } from './deploy';
import { explorerError, networkToVerifyOn } from './explorers';
import { checkNode } from './networks';

task('deploy', 'Deploys a token registry through the deployer contract and writes TOKEN_REGISTRY_ADDRESS')
  .addOptionalParam('tokenName', 'Name of the token')
  .addOptionalParam('tokenSymbol', 'Symbol of the token')
  .addFlag('new', 'Make another registry even if there is one')
  .addFlag('withInfrastructure', 'Install deployer, implementation and factory if none is published')
  .setAction((wanted: Wanted, hre) => withReadableErrors(hre, () => deploy(systemTime, hre, wanted)));

/**
 * Extends the toolbox's `npx hardhat verify`: it publishes the source of a contract that `deploy
 * --with-infrastructure` installed on the network's explorer.
 */
task('verify', async (args: { listNetworks: boolean }, hre, runSuper): Promise<void> => {
  if (!args.listNetworks)
    await withReadableErrors(hre, async () => {
      const { settings } = readSettings();
      const network = networkToVerifyOn(hre.network.name, settings);
      await checkNode(network, settings);
      hre.config.etherscan.enabled = network.explorerApi === 'etherscan';
      hre.config.blockscout.enabled = network.explorerApi === 'blockscout';
      // hardhat-verify recognises a deployed contract by its compiled code.
      await hre.run('compile', { quiet: true });
    });
  await runSuper(args);
});

/** The task prints the message of an error thrown here, and ends the command with 1. */
subtask('verify:etherscan', async (args: object, _hre, runSuper): Promise<void> => {
  try {
    await runSuper(args);
  } catch (thrown) {
    const error = explorerError(thrown);
    throw error instanceof ServiceError ? new Error(errorText(error)) : error;
  }
});

task('did', "Makes the issuer's did:web key pair (DID_KEY_PAIRS) and DID document: the same as npx tdoc did")
  .addFlag('force', 'Replace an existing key: credentials that it signed will no longer verify')
  .addFlag('check', 'Make nothing; compare did.json, the key and the document that DOMAIN serves')
  .setAction(({ force, check }: { force: boolean; check: boolean }) =>
    runTdoc(['did', ...(force ? ['--force'] : []), ...(check ? ['--check'] : [])], systemTime),
  );

task('signing-key', 'Makes the key that signs webhooks: the same as npx tdoc signing-key')
  .addFlag('force', 'Replace an existing key: subscribers then need the new public key')
  .addOptionalParam('publicKeyFile', 'File for the public key (default: webhook-public-key.pem)')
  .setAction(({ force, publicKeyFile: file }: { force: boolean; publicKeyFile?: string }) =>
    runTdoc(
      ['signing-key', ...(force ? ['--force'] : []), ...(file ? ['--public-key-file', file] : [])],
      systemTime,
    ),
  );

interface TestArguments {
  testFiles: string[];
  parallel: boolean;
  bail: boolean;
  grep?: string;
}

// Hardhat's own task would not read .mocharc.cjs, and runs root hooks in workers only.
task(
  TASK_TEST,
  'Runs Mocha, as `npx mocha` does',
  ({ testFiles, parallel, bail, grep }: TestArguments): Promise<void> => {
    const flags = Object.entries({ parallel, bail }).flatMap(([name, isSet]) => (isSet ? [`--${name}`] : []));
    const mocha = [require.resolve('mocha/bin/mocha.js'), ...flags, ...(grep ? ['--grep', grep] : [])];
    const { status } = spawnSync(process.execPath, [...mocha, ...testFiles], { stdio: 'inherit' });
    process.exitCode = status ?? 1;
    return Promise.resolve();
  },
);

/** Hardhat prints it in front of the message: "Error in plugin …". */
const ORIGIN = 'transferable-document-service';

/**
 * Runs a task's action so that an error of ours prints its message, code and remedy, and a stack only with
 * `--show-stack-traces`.
 */
async function withReadableErrors<T>(
  { hardhatArguments }: Pick<HardhatRuntimeEnvironment, 'hardhatArguments'>,
  action: () => Promise<T>,
): Promise<T> {
  try {
    return await action();
  } catch (thrown) {
    throw readable(thrown, hardhatArguments.showStackTraces);
  }
}

/**
 * Converts an error of ours into the form that Hardhat does not call unexpected. Other errors are returned
 * unchanged. Hardhat also prints the stack of every error if it detects a CI server: that output is made
 * empty.
 */
export function readable(thrown: unknown, showStackTraces = false): unknown {
  if (!(thrown instanceof ServiceError)) return thrown;
  const error = new HardhatPluginError(ORIGIN, errorText(thrown), thrown);
  if (!showStackTraces) Object.defineProperty(error, inspect.custom, { value: () => '' });
  return error;
}
