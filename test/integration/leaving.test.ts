import { expect } from 'chai';
import type { Issuing } from '../../service/issuance/issue-document';
import { eventually } from '../helpers/eventually';
import { accepting, mintedDocument, startHttpApp, type RunningHttpApp } from '../helpers/processes/http-app';
import { createRequest, rawRequest } from '../helpers/processes/raw-request';
import { stopLater } from '../helpers/resources';

/** More listeners than Node.js accepts without a warning. */
const ON_ONE_CONNECTION = 20;

describe('POST /create when its caller leaves', () => {
  let app: RunningHttpApp;
  let issueDocument: Issuing['issue'];
  /** The signals of the requests that reached the use case. */
  let signals: AbortSignal[];
  const warnings: Error[] = [];

  before(() => {
    const onWarning = (warning: Error): void => void warnings.push(warning);
    process.on('warning', onWarning);
    stopLater('listening to warnings', () => process.off('warning', onWarning));
  });

  beforeEach(async () => {
    signals = [];
    app = await startHttpApp({ issuing: accepting((request) => issueDocument(request)) });
    issueDocument = ({ left }) => {
      signals.push(left);
      return new Promise((_, reject) =>
        left.addEventListener('abort', () => reject(left.reason as Error), { once: true }),
      );
    };
  });

  /** The server has done all that it does by itself when it has answered others. */
  const answerTwice = async (): Promise<void> => {
    for (let times = 0; times < 2; times++) await (await fetch(app.url)).text();
  };
  const linesWith = (code: string) => app.log.filter((line) => line.code === code);

  it('gives the document up, with one line in the log that is no error', async () => {
    const { socket } = await rawRequest(app.url, createRequest());
    await eventually('it is worked on', () => signals.length === 1);
    await answerTwice();
    expect(signals[0]?.aborted, 'while the caller waits').to.equal(false);
    socket.destroy();
    const line = await eventually('it is said to have left', () => linesWith('CALLER_LEFT')[0]);
    expect(line).to.include({ level: 'info', status: 499 });
    expect(line).not.to.have.any.keys('error', 'stack');
    await answerTwice();
    expect(linesWith('CALLER_LEFT')).to.have.length(1);
    expect(app.log.filter(({ level }) => level !== 'info')).to.deep.equal([]);
  });

  it("gives up all requests of the caller's connection", async () => {
    const { socket } = await rawRequest(app.url, createRequest().repeat(ON_ONE_CONNECTION));
    await eventually('all are worked on', () => signals.length === ON_ONE_CONNECTION);
    socket.destroy();
    await eventually('all are given up', () => linesWith('CALLER_LEFT').length === ON_ONE_CONNECTION);
    expect(warnings).to.deep.equal([]);
  });

  it('logs that the caller left although the document was issued', async () => {
    issueDocument = async ({ left }) => {
      signals.push(left);
      await new Promise((resolve) => left.addEventListener('abort', resolve, { once: true }));
      return mintedDocument();
    };
    const { socket } = await rawRequest(app.url, createRequest());
    await eventually('it is worked on', () => signals.length === 1);
    socket.destroy();
    await eventually('it is said to have left', () => linesWith('CALLER_LEFT').length === 1);
    expect(app.log.some(({ msg }) => msg === 'document issued')).to.equal(true);
    expect(app.log.filter(({ level }) => level !== 'info')).to.deep.equal([]);
  });

  it('does not abort a request when another one of the connection ends', async () => {
    const goOn: (() => void)[] = [];
    issueDocument = async ({ left }) => {
      signals.push(left);
      await new Promise<void>((resolve) => goOn.push(resolve));
      return mintedDocument();
    };
    const request = await rawRequest(app.url, createRequest().repeat(2));
    await eventually('both are worked on', () => goOn.length === 2);
    goOn[0]?.();
    await eventually('the first is answered', () => request.answer().includes('0x01'));
    await answerTwice();
    expect(signals.map(({ aborted }) => aborted)).to.deep.equal([false, false]);
    goOn[1]?.();
    await eventually('the second is answered', () => request.answer().split('0x01').length === 3);
    request.socket.destroy();
  });
});
