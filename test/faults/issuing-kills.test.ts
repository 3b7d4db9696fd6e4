// eslint-disable-next-line no-restricted-syntax -- real time: kills and callers come at random moments.
import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'chai';
import { freePort } from '../../devnet/place';
import minimal from '../fixtures/bill-of-lading-minimal.json';
import { create, type CreateAnswer } from '../helpers/processes/create-call';
import { expectDocumentsKept } from '../helpers/processes/documents-kept';
import { API_KEY, AUTHORIZATION } from '../helpers/processes/documents-call';
import { ENGINES, newState, type Engine } from '../helpers/database/engines';
import { eventually } from '../helpers/eventually';
import { triedTokens } from '../helpers/chain/minted-tokens';
import { startRpcProxy, THROUGH, type Answerer, type RpcProxy } from '../helpers/chain/rpc-proxy';
import { seededRandom, type SeededRandom } from '../helpers/seeded-random';
import {
  launchServiceProcess,
  startServiceProcess,
  type LaunchedService,
} from '../helpers/processes/service-process';
import { localSetupOfSuite } from '../helpers/chain/local-setup';

const KILLS: Record<Engine, number> = { SQLite: 3, PostgreSQL: 2 };
/** The moments of the kills, and the requests. The timing within them is real, and differs in each run. */
const SEED = 1;
/** About as long as a service takes to start. */
const START_MS = 800;
/** Long enough for a few documents. */
const LONGEST_LIFE_MS = 500;
const CALLERS = 3;
const LONGEST_PAUSE_MS = 150;
/** A caller whose connection broke tries again after this time. */
const COME_AGAIN_MS = 30;

const SEND = 'eth_sendRawTransaction';

/** Kills the service or spares it; returns whether it was killed. */
type Kill = () => Promise<boolean>;

/** The steps of a mint as the node sees them. */
const STEPS: ((kill: Kill) => Answerer)[] = [
  // Before the node hears of the mint.
  (kill) => async (method) => (method === SEND && (await kill()) ? 'drop request' : 'none'),
  // When the node has the mint, before it says so.
  (kill) => async (method, _, forward) => {
    if (method !== SEND) return 'none';
    const answer = await forward();
    await kill();
    return answer;
  },
  // When the receipt is there.
  (kill) => async (method, _, forward) => {
    if (method !== 'eth_getTransactionReceipt') return 'none';
    const answer = await forward();
    if ('result' in answer && answer.result !== null) await kill();
    return answer;
  },
];

/** With a key the caller retries until it is answered; without one it asks once. */
interface Request {
  blNumber: string;
  key: string | undefined;
}

describe('a service that is killed while it issues', () => {
  const local = localSetupOfSuite();
  let owner: string;

  before(async () => {
    owner = await local.account(1);
  });

  for (const engine of ENGINES) {
    const kills = `${KILLS[engine]} kills under load on ${engine} (seed ${SEED})`;
    it(`issues every keyed request once, and none twice, in ${kills}`, async function () {
      await using state = await newState(engine);
      if (state === undefined) return this.skip();
      const START_BLOCK = String((await local.client.getBlockNumber()) + 1);
      await issueInSpiteOfKills(KILLS[engine], {
        ...local.settings,
        ...state.settings,
        API_KEY,
        START_BLOCK,
      });
    });
  }

  async function issueInSpiteOfKills(kills: number, settings: Record<string, string>): Promise<void> {
    const node = await startRpcProxy(local.node.url);
    const PORT = String(await freePort(0));
    const serviceUrl = `http://127.0.0.1:${PORT}`;
    const withBoth = { ...settings, PORT, RPC_URL: node.url };
    const load = startLoad(serviceUrl);
    const moments = seededRandom(SEED);
    try {
      for (let kill = 1; kill <= kills; kill++) {
        const service = launchServiceProcess(withBoth);
        // A wrong answer to a caller ends the test at once.
        await Promise.race([momentToKill(moments, node, service), load.finished]).finally(() =>
          service.end('SIGKILL'),
        );
        node.answer(THROUGH);
      }
      await using service = await startServiceProcess(withBoth);
      await load.stop();
      await load.askAgain();
      await expectAllKept(service.url, load, node, Number(settings.START_BLOCK));
    } finally {
      load.giveUp();
      await load.stop().catch(() => undefined);
      await node.close();
    }
  }

  async function expectAllKept(
    serviceUrl: string,
    { asked, answers }: Load,
    node: RpcProxy,
    fromBlock: number,
  ): Promise<void> {
    const tried = triedTokens(node.requests);
    const documents = await expectDocumentsKept({ local, serviceUrl, fromBlock, tried });
    const tokensOf = new Map<string, string[]>();
    for (const text of documents.values()) {
      const { credentialSubject } = (JSON.parse(text) as CreateAnswer['body']).signedW3CDocument;
      const blNumber = String(credentialSubject.blNumber);
      tokensOf.set(blNumber, [...(tokensOf.get(blNumber) ?? []), text]);
    }
    expect(asked.length, 'requests').to.be.greaterThan(CALLERS);
    for (const { blNumber, key } of asked) {
      const texts = tokensOf.get(blNumber) ?? [];
      if (key === undefined) {
        expect(texts.length, `tokens of ${blNumber}`).to.be.lessThanOrEqual(1);
      } else {
        expect(texts, `tokens of ${blNumber}`).to.have.length(1);
        expect(texts[0] === answers.get(key), `the document of ${blNumber} is its answer`).to.equal(true);
      }
    }
  }

  type Load = ReturnType<typeof startLoad>;

  /** Starts callers that issue one document after the other, through the service that currently runs. */
  function startLoad(serviceUrl: string) {
    const asked: Request[] = [];
    /** The answered documents, by key. */
    const answers = new Map<string, string>();
    let isOver = false;
    let isGivenUp = false;

    async function untilAnswered(request: Request): Promise<string> {
      for (;;) {
        const answer = await issue(serviceUrl, request).catch(() => undefined);
        if (answer?.status === 200) return answer.text;
        if (answer) throw new Error(`${request.blNumber} was answered ${answer.status}: ${answer.text}`);
        if (isGivenUp) throw new Error(`${request.blNumber} was not answered`);
        await sleep(COME_AGAIN_MS);
      }
    }

    async function insist(request: Request, key: string): Promise<void> {
      const text = await untilAnswered(request);
      expect(text === (answers.get(key) ?? text), `the same answer to ${key} again`).to.equal(true);
      answers.set(key, text);
    }

    async function callAgainAndAgain(caller: number): Promise<void> {
      const random = seededRandom(SEED + caller);
      for (let call = 1; !isOver; call++) {
        const blNumber = `CALLER${caller}N${call}`;
        const request = { blNumber, key: random.chance(0.75) ? blNumber : undefined };
        asked.push(request);
        if (request.key === undefined) await issue(serviceUrl, request).catch(() => undefined);
        else await insist(request, request.key);
        const earlier = random.pick(asked);
        if (earlier.key !== undefined && answers.has(earlier.key)) await insist(earlier, earlier.key);
        await sleep(random.below(LONGEST_PAUSE_MS));
      }
    }

    const callers = Promise.all(Array.from({ length: CALLERS }, (_, n) => callAgainAndAgain(n + 1)));
    // A rejection is reported when the load is stopped.
    callers.catch(() => undefined);
    return {
      asked,
      answers,
      /** Rejects when a caller got another answer than 200, or other bytes than before. */
      finished: callers,
      /** Resolves when every caller with a key has its answer. */
      async stop() {
        isOver = true;
        await callers;
      },
      /** Repeats every request that has a key. */
      async askAgain() {
        for (const request of asked) if (request.key !== undefined) await insist(request, request.key);
      },
      /** Callers stop retrying. */
      giveUp: () => void (isGivenUp = true),
    };
  }

  function issue(serviceUrl: string, { blNumber, key }: Request): Promise<CreateAnswer> {
    const credentialSubject = { ...minimal.credentialSubject, blNumber };
    const headers = { ...AUTHORIZATION, ...(key !== undefined && { 'Idempotency-Key': key }) };
    return create(serviceUrl, { credentialSubject, owner, holder: owner }, { headers });
  }
});

/**
 * Waits for a random moment: while the service starts, while it is up, or when one of the next mints is at a
 * step.
 */
async function momentToKill(random: SeededRandom, node: RpcProxy, service: LaunchedService): Promise<void> {
  const moment = random.fraction();
  if (moment < 0.15) return sleep(random.below(2 * START_MS));
  if (moment < 0.35) {
    await service.listening();
    return sleep(random.below(LONGEST_LIFE_MS));
  }
  let left = random.below(6);
  const step = random.pick(STEPS);
  let isKilled = false;
  node.answer(
    step(async () => {
      if (left-- > 0) return false;
      await service.end('SIGKILL');
      return (isKilled = true);
    }),
  );
  await eventually('a mint is at the step', () => isKilled);
}
