import { lookup } from 'node:dns';
import { Agent, fetch } from 'undici';
import { systemClock } from '../base/clock';
import { registryName } from '../base/registry-name';
import type { SinkRules } from '../base/sink-rules';
import { guardedConnector } from '../delivery/guarded-connector';
import { fetchJson, type FetchedJson, type Get } from '../did/fetch-json';
import { resolveDidWeb } from '../did/resolve-did-web';
import type { JsonObject } from '../issuance/credential';
import { createDocumentLoader } from '../issuance/document-loader';
import { tokenIdHexOf } from '../registry/token-id-forms';
import type { ReadToken } from '../verification/check-status';
import { verifyCredential } from '../verification/verify-credential';
import type { VerifyView } from './views';

/** The settings of a verification. */
export interface VerificationSettings {
  /** URL of the own context of Bills of Lading. It is never fetched. */
  contextUrl: string;
  /** The addresses that may be asked: the maker of a credential chooses them. */
  rules: SinkRules;
}

const CONNECT_WITHIN_MS = 5_000;
const ANSWER_WITHIN_MS = 10_000;

/** Verifies a credential, and notes what was asked outside of the service. */
export async function verifyPresented(
  credential: JsonObject,
  { contextUrl, rules }: VerificationSettings,
  readToken: ReadToken,
): Promise<VerifyView> {
  const lookedUp: string[] = [];
  const agents = new Map(
    ['https:', 'http:'].map((protocol) => {
      const connect = guardedConnector({ rules, lookup }, protocol, CONNECT_WITHIN_MS);
      return [protocol, new Agent({ connect })];
    }),
  );
  const get: Get = async (url, options) => {
    lookedUp.push(url.href);
    const dispatcher = agents.get(url.protocol);
    return fetch(url, { ...options, ...(dispatcher && { dispatcher }) });
  };
  const fetchGuarded = (url: URL): Promise<FetchedJson> => fetchJson(url, ANSWER_WITHIN_MS, get);
  try {
    const { documentIntegrity, issuerIdentity, documentStatus, outcome, shown } = await verifyCredential(
      credential,
      {
        knownContexts: createDocumentLoader(contextUrl),
        fetchJson: fetchGuarded,
        resolveDid: (did) => resolveDidWeb(did, fetchGuarded),
        readToken,
        clock: systemClock,
      },
    );
    const { token, ...status } = documentStatus;
    return {
      outcome,
      documentIntegrity,
      issuerIdentity: {
        outcome: issuerIdentity.outcome,
        checks: issuerIdentity.checks,
        issuer: issuerIdentity.issuer ?? null,
      },
      documentStatus: {
        ...status,
        tokenId: token ? tokenIdHexOf(token.tokenId) : null,
        registry: token ? registryName(token.chainId, token.registry) : null,
      },
      lookedUp,
      shown: shown ?? null,
    };
  } finally {
    for (const agent of agents.values()) await agent.destroy();
  }
}
