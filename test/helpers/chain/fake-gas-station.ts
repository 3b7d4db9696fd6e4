import { listen } from '../../../service/http/server';
import { track } from '../resources';

/** A gas station over HTTP that answers as the test says. */
export interface FakeGasStation {
  url: string;
  /** How often it was asked. */
  asked(): number;
  /** Answers with these fees, in gwei, from now on. */
  tell(fees: { maxFee: number; maxPriorityFee: number }): void;
  /** Answers with an error from now on. */
  fail(): void;
  close(): Promise<void>;
}

/** Starts it on a free port; it fails until it is told fees. */
export async function startFakeGasStation(): Promise<FakeGasStation> {
  let asked = 0;
  let answer: { status: number; body: unknown } = { status: 503, body: {} };
  const server = await listen(
    (_request, response) => {
      asked++;
      response.writeHead(answer.status).end(JSON.stringify(answer.body));
    },
    '127.0.0.1',
    0,
  );
  const untrack = track(`gas station on ${server.url}`);
  return {
    url: server.url,
    asked: () => asked,
    tell: (standard) => void (answer = { status: 200, body: { standard } }),
    fail: () => void (answer = { status: 503, body: {} }),
    async close() {
      await server.close();
      untrack();
    },
  };
}
