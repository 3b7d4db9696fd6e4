import { join } from 'node:path';
import type { HardhatRuntimeEnvironment } from 'hardhat/types';
import type { Network } from '../../service/chain/networks';
import { readSettings } from '../../service/config/config';
import { secretsOf } from '../../service/config/secrets';
import { secretMasker } from '../../service/base/mask-secrets';
import { settingOf, type Settings } from '../../service/config/settings';
import { tenantOf } from '../../service/config/tenant';
import { setEnvValue, shadowWarning } from '../../cli/files/env-file';
import { maskedError } from '../task-error';
import type { DeployContext } from './context';
import { provideInfrastructure, isSame } from './infrastructure';
import { dropJournalsOfEarlierChains } from './journals';
import { deployingAccount, identifyChain, requestOf } from './node';
import { provideRegistry, type RegistryRequest } from './registry';
import { leftBehind } from './registry-before';
import { addressTable, hints, links } from './report';
import { targetOf } from './target';
import { verification } from './verification';

/** All contracts that were deployed or found, for tests and scripts. */
export interface RegistryDeployment {
  readonly chainId: number;
  readonly titleEscrowFactory: string;
  readonly tokenImplementation: string;
  readonly deployer: string;
  readonly registry: string;
  /** Admin and minter of a newly deployed registry. */
  readonly account: string;
  readonly isNew: boolean;
}

/** The user's request. `withInfrastructure`: missing contracts may be installed on a public network. */
export interface DeploymentRequest extends RegistryRequest {
  readonly withInfrastructure: boolean;
}

const SETTING = 'TOKEN_REGISTRY_ADDRESS';

/**
 * Makes sure that the tenant has a token registry on the network of NET, or on that of `--network`, writes
 * its address into ENV_FILE, and prints the result. Running it again changes nothing.
 */
export async function deployRegistry(
  hre: HardhatRuntimeEnvironment,
  wanted: DeploymentRequest,
): Promise<RegistryDeployment> {
  const { envFile, settings } = readSettings();
  const mask = secretMasker(secretsOf(settings));
  try {
    return await deploy(hre, wanted, { envFile, settings, mask });
  } catch (thrown) {
    throw maskedError(thrown, mask, 'DEPLOYMENT_FAILED');
  }
}

async function deploy(
  hre: HardhatRuntimeEnvironment,
  wanted: DeploymentRequest,
  { envFile, settings, mask }: { envFile: string; settings: Settings; mask: DeployContext['mask'] },
): Promise<RegistryDeployment> {
  const target = targetOf(hre, settings);
  const knownAddress = settingOf(settings, 'TOKEN_REGISTRY_ADDRESS');
  const request = requestOf(hre);
  const chain = await identifyChain(request, target, settings);
  const context: DeployContext = {
    hre,
    request,
    target,
    chain,
    tenant: tenantOf(envFile),
    account: await deployingAccount(request, target),
    journalsRoot: join(hre.config.paths.ignition, 'deployments'),
    mask,
    say: (line) => console.log(line),
  };
  if (target.isLocal) dropJournalsOfEarlierChains(context.journalsRoot, target.node, chain);
  await hre.run('compile', { quiet: true });

  const infrastructure = await provideInfrastructure(context, wanted.withInfrastructure);
  const registry = await provideRegistry(context, infrastructure, wanted, knownAddress);
  context.say(`\n${addressTable(context, infrastructure, registry)}\n`);
  for (const line of links(context, registry)) context.say(line);
  const lines = await save(context, registry.address, {
    net: settingOf(settings, 'NET'),
    before: knownAddress,
    settings,
  });
  for (const line of lines) context.say(line);
  for (const line of await hints(context, registry, settings)) context.say(line);
  for (const line of await verification(context, infrastructure)) context.say(line);

  const { titleEscrowFactory, tokenImplementation, deployer } = infrastructure;
  const isNew = registry.status === 'deployed';
  const { address } = registry;
  return {
    chainId: chain.chainId,
    titleEscrowFactory,
    tokenImplementation,
    deployer,
    registry: address,
    account: context.account,
    isNew,
  };
}

async function save(
  context: DeployContext,
  address: string,
  { net, before, settings }: { net: Network; before: string | undefined; settings: Settings },
): Promise<string[]> {
  const { target, tenant } = context;
  if (target.network === undefined) {
    return [
      'This network ends with the command, so nothing was written. ' +
        'For a chain that stays, leave --network out:',
      `the network of NET (${net.name}) is used then.`,
    ];
  }
  await setEnvValue(tenant.envFile, SETTING, address);
  const replaced = before !== undefined && !isSame(before, address) ? before : undefined;
  const was = replaced === undefined ? '' : ` (it was ${replaced})`;
  const warning = shadowWarning(SETTING, address);
  return [
    `${SETTING} is in ${tenant.envFile}${was}.`,
    ...(warning === undefined ? [] : [warning]),
    ...(replaced === undefined ? [] : await leftBehind(context, settings, replaced)),
  ];
}
