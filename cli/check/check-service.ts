import { existsSync, mkdtempSync, rmdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import pMap from 'p-map';
import { systemTime } from '../../service/base/time';
import { codeOf } from '../../service/base/errors';
import {
  contextFileAt,
  isOwnContext,
  PUBLISHED_CONTEXTS,
  publishedPath,
  readContextFile,
} from '../../service/base/published-files';
import { printableUrl } from '../../service/base/mask-secrets';
import { loadConfig, missingForIssuing, readSettings, type Config } from '../../service/config/config';
import { otherFormsOf } from '../../service/config/warnings';
import type { Settings } from '../../service/config/settings';
import { openDatabaseBesideService } from '../../service/database/open-database';
import { unusable } from '../../service/database/open-sqlite';
import { createFetchingBytes, LONGEST_FETCHING_MS } from '../../service/did/fetch-json';
import { examineContext } from '../../service/validation/examine-context';
import { openModule } from '../../service/keys/pkcs11';
import { openWallet } from '../../service/keys/wallet';
import { sendTestEvent, targetOf } from '../../service/subscriptions/manage-subscriptions';
import { DEFAULT_SUBSCRIPTION } from '../../service/outbox/channels';
import { definedBySettings } from '../../service/subscriptions/subscription';
import type { Answer } from '../answer';
import { maskSecrets } from '../errors';
import { compareDid } from '../keys/check-did';
import { checkChain } from './check-chain';
import { found, type CheckedNode, type Finding } from './check-node';

/**
 * Checks everything that the service needs, and changes nothing. The answer is no if there is a fault. It is
 * not known if there is none, but not everything could be checked.
 */
export async function checkService({ sendTestEvent: isSent }: { sendTestEvent?: true }): Promise<Answer> {
  const { envFile, settings } = readSettings();
  let config: Config | undefined;
  const findings = await found(`settings ${envFile}`, async () => {
    const loaded = loadConfig();
    // A key that cannot be opened is a setting that is wrong.
    if (loaded.walletKey !== undefined) openWallet(systemTime, loaded.walletKey);
    if (loaded.issuerKey && 'module' in loaded.issuerKey) openModule(systemTime, loaded.issuerKey.module);
    config = loaded;
    return settingsOf(config);
  });
  const notChecked = 'not checked: correct the settings first';
  if (config !== undefined) findings.push(...(await checkParts(config, settings, isSent === true)));
  else findings.push({ status: 'unknown', subject: 'all else', statement: notChecked });
  return report(findings);
}

async function checkParts(config: Config, settings: Settings, isSent: boolean): Promise<Finding[]> {
  // Nodes answer side by side: one that hangs does not delay the others.
  const nodes = nodesOf(config);
  const chainIds = [...new Set(nodes.map(({ network }) => network.chainId))];
  const chains = pMap(chainIds, (chainId) => {
    const ofChain = nodes.filter(({ network }) => network.chainId === chainId);
    return checkChain(ofChain, settings, systemTime.now());
  });
  const findings = await Promise.all([
    chains.then((all) => all.flat()),
    config.domain === undefined ? [] : checkIssuer(),
    pMap(PUBLISHED_CONTEXTS, (fileName) => checkContext(fileName, config)).then((all) => all.flat()),
    checkSigner(config),
    checkWebhooks(config, isSent),
    checkDatabase(config),
  ]);
  return findings.flat();
}

/** Without any of these settings the service is meant to deliver events only. */
const OF_AN_ISSUER = ['DOMAIN', 'WALLET_PRIVATE_KEY', 'DID_KEY_PAIRS'];

function settingsOf(config: Config): Omit<Finding, 'subject'>[] {
  const missing = missingForIssuing(config);
  const isIssuer = OF_AN_ISSUER.some((name) => !missing.includes(name)) || config.registries.length === 0;
  return [
    ...config.warnings.map((statement) => ({ status: 'warning' as const, statement })),
    missing.length === 0
      ? { status: 'ok', statement: `complete, for ${config.network.name}` }
      : {
          status: isIssuer ? 'fault' : 'warning',
          statement: `documents cannot be issued without ${missing.join(', ')}`,
          remedy: `\`npx tdoc setup\` makes the keys and says how to get the others.${otherFormsOf(missing)}`,
        },
  ];
}

/** The nodes of NET, and those of the followed registries. */
function nodesOf(config: Config): CheckedNode[] {
  const nodes = new Map<string, CheckedNode>();
  const nodeAt = (network: Config['network'], url: string): CheckedNode => {
    const key = `${network.chainId} ${url}`;
    const node = nodes.get(key) ?? {
      network,
      url,
      registries: [],
      startBlocks: new Map(),
      confirmations: [],
      issuing: undefined,
    };
    nodes.set(key, node);
    return node;
  };
  const own = config.rpcUrls.map((url) => nodeAt(config.network, url));
  for (const { network, rpcUrls, address, confirmations, startBlock } of config.registries)
    for (const url of rpcUrls) {
      const node = nodeAt(network, url);
      node.registries.push(address);
      node.startBlocks.set(address, startBlock);
      node.confirmations.push(confirmations);
    }
  const { walletKey, tokenRegistryAddress: registryAddress } = config;
  if (walletKey !== undefined && registryAddress !== undefined) {
    const wallet = openWallet(systemTime, walletKey);
    for (const node of own) node.issuing = { wallet, registryAddress };
  }
  return [...nodes.values()];
}

async function checkSigner({ walletKey }: Config): Promise<Finding[]> {
  const remote = walletKey && openWallet(systemTime, walletKey).remote;
  if (remote === undefined) return [];
  return found(`signer ${remote.report().at}`, async () => {
    await remote.check();
    return [{ status: 'ok', statement: 'answers, and has the key of WALLET_ADDRESS' }];
  });
}

async function checkIssuer(): Promise<Finding[]> {
  const { did, parts } = await compareDid();
  return parts.flatMap(({ name, differences, unknown }): Finding[] => {
    const isKey = name === 'DID_KEY_PAIRS' || name === 'DID_PKCS11_KEY';
    const subject = isKey ? name : `DID document ${name}`;
    const statement = differences.join('; ');
    const ofKey = name === 'DID_PKCS11_KEY' ? RESTORE_MODULE_KEY : RESTORE_KEY;
    const remedy = isKey ? ofKey : /^https?:/.test(name) ? SERVE_DID : REWRITE_DID;
    // Some differences say the command themselves.
    const ownRemedy = statement.includes('`npx tdoc') ? undefined : remedy;
    const faults: Finding[] =
      differences.length > 0 ? [{ status: 'fault', subject, statement, remedy: ownRemedy }] : [];
    if (unknown !== undefined)
      return [
        ...faults,
        { status: 'unknown', subject, statement: unknown, remedy: isKey ? undefined : START_SERVICE },
      ];
    return faults.length > 0 ? faults : [{ status: 'ok', subject, statement: `is that of ${did}` }];
  });
}

const RESTORE_KEY =
  'Restore the key pair, or make one with `npx tdoc did` (`--rotate` if there were earlier ones).';
const RESTORE_MODULE_KEY =
  'Correct DID_PKCS11_KEY, or restore did.json; if the module lost the key, run `npx tdoc did --rotate`.';
const REWRITE_DID =
  'Restore the file from a copy. If the key is the first one, remove the file and run `npx tdoc did`.';
const SERVE_DID = 'Verifiers trust this document: let DOMAIN lead to the service, which serves did.json.';
const START_SERVICE = 'Start the service, and let DOMAIN lead to it.';

/** Only the context that the settings name keeps the service from its start. */
async function checkContext(
  fileName: string,
  { domain, billOfLadingContextUrl = '' }: Config,
): Promise<Finding[]> {
  const bytes = readContextFile(fileName);
  const status = contextFileAt(billOfLadingContextUrl) === fileName ? 'fault' : 'warning';
  const faults = isOwnContext(fileName) ? await examineContext(bytes) : [];
  const findings = faults.map((statement): Omit<Finding, 'subject'> => {
    return { status, statement, remedy: CORRECT_CONTEXT };
  });
  if (domain !== undefined)
    findings.push(await compareServed(new URL(`https://${domain}${publishedPath(fileName)}`), bytes));
  return findings.map((one) => ({ subject: `context contexts/${fileName}`, ...one }));
}

const CORRECT_CONTEXT = 'Correct the file; if credentials name it, publish another one instead.';
const SERVE_CONTEXT = 'Let DOMAIN lead to the service, and restart it: verifiers fetch the file from there.';

async function compareServed({ href }: URL, bytes: Buffer): Promise<Omit<Finding, 'subject'>> {
  const served = await createFetchingBytes(systemTime, LONGEST_FETCHING_MS)(new URL(href));
  if (served.kind === 'bytes' && bytes.equals(served.bytes))
    return { status: 'ok', statement: `${href} serves it` };
  const status = served.kind === 'unavailable' ? 'unknown' : 'fault';
  const problem = served.kind === 'bytes' ? 'serves other bytes' : served.problem;
  return { status, statement: `${href} ${problem}`, remedy: SERVE_CONTEXT };
}

async function checkWebhooks(config: Config, isSent: boolean): Promise<Finding[]> {
  const webhooks = config.registries.flatMap(({ webhook }) => (webhook ? [webhook] : []));
  const distinct = [...new Map(webhooks.map((webhook) => [webhook.url, webhook])).values()];
  if (distinct.length === 0) {
    const remedy = 'Set WEBHOOK_URL, or make a subscription.';
    const statement = 'no URL in the settings: events are stored, and sent to subscriptions only';
    return [{ status: 'warning', subject: 'webhook', statement, remedy }];
  }
  return pMap(distinct, async (webhook): Promise<Finding> => {
    const subject = `webhook ${printableUrl(webhook.url)}`;
    const { signingKeys } = config;
    const notAsked = 'not asked; --send-test-event sends it a signed test event';
    if (!isSent || signingKeys === undefined) return { status: 'skipped', subject, statement: notAsked };
    const target = targetOf(definedBySettings(webhook, 'active'), signingKeys);
    const answer = await sendTestEvent(target, DEFAULT_SUBSCRIPTION, systemTime);
    const { isDelivered, status, error, milliseconds } = answer;
    if (isDelivered)
      return { status: 'ok', subject, statement: `took the test event: ${status} after ${milliseconds} ms` };
    const remedy = 'Start the receiver, give it the public key, or correct WEBHOOK_URL.';
    return { status: 'fault', subject, statement: `did not take the test event: ${error}`, remedy };
  });
}

/** The finding about a database that the next start makes or migrates. */
const FINDINGS_OF_NEW: Readonly<Record<string, string>> = {
  DATABASE_MISSING: 'not there yet: the next start of the service makes it',
  DATABASE_NOT_MIGRATED: 'has no tables of this version yet: the next start of the service makes them',
};

async function checkDatabase(config: Config): Promise<Finding[]> {
  const subject = config.databaseUrl === undefined ? `database in ${config.dataDir}` : 'database';
  return found(subject, async () => {
    try {
      const database = await openDatabaseBesideService(systemTime, config);
      await database.close();
      return [{ status: 'ok', statement: 'can be opened' }];
    } catch (cause) {
      const statement = FINDINGS_OF_NEW[codeOf(cause) ?? ''];
      if (statement === undefined) throw cause;
      if (codeOf(cause) === 'DATABASE_MISSING') expectCreatable(config.dataDir);
      return [{ status: 'ok', statement }];
    }
  });
}

/**
 * Makes a folder where the service would make DATA_DIR, and removes it. The mode of the folder above does not
 * tell: the disk may be read-only or full.
 *
 * @throws ConfigurationError DATA_DIR_UNUSABLE.
 */
function expectCreatable(dataDir: string): void {
  let above = dataDir;
  while (!existsSync(above)) above = dirname(above);
  try {
    rmdirSync(mkdtempSync(join(above, '.tdoc-check-')));
  } catch (cause) {
    throw unusable(dataDir, cause);
  }
}

const WIDTH = 'warning'.length;

function report(findings: readonly Finding[]): Answer {
  const having = (wanted: Finding['status']): number =>
    findings.filter(({ status }) => status === wanted).length;
  const [faults, warnings, unknown] = [having('fault'), having('warning'), having('unknown')];
  const isYes = faults > 0 ? false : unknown > 0 ? undefined : true;
  const counts = `faults ${faults}, warnings ${warnings}, not known ${unknown}`;
  const checks = findings.map(({ status, subject, statement, remedy }) => ({
    status,
    subject: maskSecrets(subject),
    statement: maskSecrets(statement),
    // Messages of errors say the remedy themselves.
    remedy: remedy === undefined || statement.includes(remedy) ? null : maskSecrets(remedy),
  }));
  return {
    lines: [
      ...checks.map(({ status, subject, statement, remedy }) => {
        const told = remedy === null ? statement : `${statement.replace(/\.$/, '')}. ${remedy}`;
        return `${status.padEnd(WIDTH)}  ${subject}: ${told}`;
      }),
      isYes ? `ready: ${counts}` : isYes === false ? `not ready: ${counts}` : `not all is known: ${counts}`,
    ],
    json: { isReady: isYes ?? null, checks },
    isYes,
  };
}
