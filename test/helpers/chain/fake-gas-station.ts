import { serve, type TestServer } from '../http-server';

/** A gas station over HTTP that answers as the test says. */
export interface FakeGasStation extends TestServer {
  /** How often it was asked. */
  asked(): number;
  /** Answers with these fees, in gwei, from now on. */
  tell(fees: { maxFee: number; maxPriorityFee: number }): void;
  /** Answers with an error from now on. */
  fail(): void;
}

/** Starts it on a free port; it fails until it is told fees. */
export async function startFakeGasStation(): Promise<FakeGasStation> {
  let asked = 0;
  let answer: { status: number; body: unknown } = { status: 503, body: {} };
  const server = await serve((_request, response) => {
    asked++;
    response.writeHead(answer.status).end(JSON.stringify(answer.body));
  });
  return {
    ...server,
    asked: () => asked,
    tell: (standard) => void (answer = { status: 200, body: { standard } }),
    fail: () => void (answer = { status: 503, body: {} }),
  };
}
