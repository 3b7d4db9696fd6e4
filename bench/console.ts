import { setTimeout as sleep } from 'node:timers/promises';
import { compare, type Figures, type Size } from './measure';
import { onNewChain, withReceiver, withService, type ProbedService } from './processes';

const CONSOLES = 10;
const ROUND_MS = 8_000;
const DOCUMENTS_A_SECOND = 5;
const ADMIN_API_KEY = 'key-of-the-bench';

/** The processor time of a service that issues five documents a second, without and with open consoles. */
export async function consoles(size: Size): Promise<void> {
  await withReceiver((receiver) =>
    onNewChain((local) =>
      withService(local, { WEBHOOK_URL: receiver.url, ADMIN_API_KEY }, (service) =>
        compare(`${DOCUMENTS_A_SECOND} documents a second`, size, {
          'no console': () => busy(service, size),
          [`${CONSOLES} consoles`]: async () => {
            const closing = await openConsoles(service);
            try {
              return await busy(service, size);
            } finally {
              closing.abort();
            }
          },
        }),
      ),
    ),
  );
}

async function busy({ cost, issue }: ProbedService, size: Size): Promise<Figures> {
  const [before, start] = [await cost(), performance.now()];
  const issued: Promise<void>[] = [];
  while (performance.now() - start < size.of(ROUND_MS)) {
    issued.push(issue());
    await sleep(1_000 / DOCUMENTS_A_SECOND);
  }
  await Promise.all(issued);
  const cpuMs = (await cost()).cpuMs - before.cpuMs;
  return { 'processor, ms a second': (cpuMs / (performance.now() - start)) * 1_000 };
}

/** Each console asks for the overview, and for the deliveries whenever the revision changes. */
async function openConsoles({ url }: ProbedService): Promise<AbortController> {
  const answer = await fetch(`${url}/console/api/session`, {
    method: 'POST',
    headers: { origin: url, 'content-type': 'application/json' },
    body: JSON.stringify({ key: ADMIN_API_KEY }),
  });
  const cookie = answer.headers.get('set-cookie')?.split(';')[0] ?? '';
  if (!answer.ok || cookie === '') throw new Error(`the log-in answered ${answer.status}`);
  const closing = new AbortController();
  const watch = async (): Promise<void> => {
    const options = { headers: { cookie }, signal: closing.signal };
    let etag = '';
    let revision: string | undefined;
    for (; !closing.signal.aborted; await sleep(1_000)) {
      const headers = { cookie, 'if-none-match': etag };
      const overview = await fetch(`${url}/console/api/overview`, { ...options, headers });
      if (overview.status === 304) continue;
      if (!overview.ok) throw new Error(`the overview answered ${overview.status}`);
      etag = overview.headers.get('etag') ?? '';
      const before = revision;
      ({ revision } = (await overview.json()) as { revision: string });
      if (revision !== before) await (await fetch(`${url}/deliveries?limit=50`, options)).arrayBuffer();
    }
  };
  for (let index = 0; index < CONSOLES; index++)
    void watch().catch((error: unknown) => {
      if (!closing.signal.aborted) console.error(error);
    });
  return closing;
}
