import { once } from 'node:events';
import { connect } from 'node:net';
import { expect } from 'chai';
import { systemTime } from '../../service/base/time';
import type { DocumentBytes } from '../../service/journal/issuance';
import { createDatabaseJournal, type Journal } from '../../service/journal/journal';
import type { SignedDocument } from '../../service/journal/issuance';
import { describeOnEngines } from '../helpers/database/engines';
import { eventually } from '../helpers/eventually';
import { API_KEY, AUTHORIZATION } from '../helpers/processes/documents-call';
import { startHttpApp, type RunningHttpApp } from '../helpers/processes/http-app';
import { mintedBy, preparedDocument, SCOPE } from '../helpers/database/prepared-documents';

const TX_HASH = `0x${'12'.repeat(32)}`;
const MEGABYTE = 1024 * 1024;

/** A JSON document of this many bytes. */
function jsonDocument(bytes: number): SignedDocument {
  const text = (filling: string): string => `{"id":"urn:ü","data":"${filling}"}`;
  const filling = 'x'.repeat(bytes - Buffer.byteLength(text('')));
  const document = new Uint8Array(bytes);
  document.set(Buffer.from(text(filling)));
  return { ...preparedDocument(0), document };
}

describeOnEngines('GET /documents/{tokenId}', (on) => {
  let journal: Journal;
  let app: RunningHttpApp;
  /** Number of parts that were read. */
  let read = 0;

  beforeEach(async () => {
    journal = createDatabaseJournal(on.database, SCOPE, systemTime);
    const counting = async function* (parts: DocumentBytes['parts']): AsyncGenerator<Uint8Array> {
      for await (const part of parts) {
        read++;
        yield part;
      }
    };
    app = await startHttpApp({
      apiKey: API_KEY,
      issuedDocuments: {
        find: (tokenId) => journal.find(tokenId),
        list: (query) => journal.list(query),
        async documentOf(tokenId) {
          const document = await journal.documentOf(tokenId);
          return document && { ...document, parts: counting(document.parts) };
        },
      },
    });
  });

  const call = (tokenId: string, method = 'GET'): Promise<Response> =>
    fetch(`${app.url}/documents/${tokenId}`, { headers: AUTHORIZATION, method });
  const issued = async (bytes = 1_000): Promise<SignedDocument> => {
    const prepared = jsonDocument(bytes);
    await journal.add(prepared);
    await journal.mined(prepared.tokenId, mintedBy(TX_HASH), true);
    return prepared;
  };

  it('answers with the signed bytes and the hash of the mint', async () => {
    for (const bytes of [1_000, 600_000]) {
      const { tokenId, document } = await issued(bytes);
      const answer = await call(tokenId);
      const expected = `{"signedW3CDocument":${Buffer.from(document).toString()},"txHash":"${TX_HASH}"}`;
      expect(answer.status).to.equal(200);
      expect(answer.headers.get('Content-Type')).to.equal('application/json; charset=utf-8');
      expect(answer.headers.get('Content-Length')).to.equal(String(Buffer.byteLength(expected)));
      expect(answer.headers.get('Cache-Control')).to.equal('private, no-store');
      expect((await answer.text()) === expected).to.equal(true);
    }
  });

  it('takes the id in capitals, in decimal and with 0x, and answers 400 to other forms', async () => {
    const { tokenId } = await issued();
    for (const form of [tokenId.toUpperCase(), BigInt(`0x${tokenId}`).toString(), `0x${tokenId}`])
      expect((await call(form)).status, form).to.equal(200);
    for (const form of ['nonsense', '12x', tokenId.slice(2), String(2n ** 256n)])
      expect((await call(form)).status, form).to.equal(400);
  });

  it('answers HEAD with the length, without reading the document', async () => {
    const { tokenId } = await issued(600_000);
    read = 0;
    const answer = await call(tokenId, 'HEAD');
    expect(answer.status).to.equal(200);
    const length = Number(answer.headers.get('Content-Length'));
    expect(length).to.equal((await (await call(tokenId)).text()).length + 1); // ü
    expect(read).to.equal(3);
    expect((await call(tokenId, 'DELETE')).status).to.equal(405);
  });

  it('answers 202 until a mint is in a block, says whether it is final, and 410 if it failed', async () => {
    const [prepared, failed] = [jsonDocument(1_000), jsonDocument(1_000)];
    for (const document of [prepared, failed]) await journal.add(document);
    const { tokenId } = prepared;
    const answerNow = async (): Promise<unknown> => {
      const answer = await call(tokenId);
      const { status } = (await answer.json()) as { status?: string };
      return [answer.status, answer.headers.get('X-Document-State'), status];
    };
    expect(await answerNow()).to.deep.equal([202, null, 'signed']);
    await journal.submitted([tokenId]);
    expect(await answerNow()).to.deep.equal([202, null, 'submitted']);
    for (const state of ['mined', 'final']) {
      await journal.mined(tokenId, mintedBy(TX_HASH), state === 'final');
      expect(await answerNow()).to.deep.equal([200, state, undefined]);
      await journal.unmined(tokenId);
      expect(await answerNow()).to.deep.equal([202, null, 'submitted']);
    }
    await journal.failed(failed.tokenId, { code: 'MINT_REVERTED', message: 'The registry is paused.' });
    const answer = await call(failed.tokenId);
    expect([answer.status, answer.headers.get('X-Error-Code')]).to.deep.equal([410, 'MINT_REVERTED']);
    const message = 'The token of this document was not made: The registry is paused. [MINT_REVERTED]';
    expect(await answer.json()).to.deep.equal({ error: { message } });
  });

  it('stops reading when the client is gone, and never reads far ahead of it', async () => {
    const { tokenId } = await issued(30 * MEGABYTE);
    read = 0;
    const socket = connect(Number(new URL(app.url).port), '127.0.0.1');
    socket.on('error', () => undefined);
    socket.write(`GET /documents/${tokenId} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${API_KEY}\r\n\r\n`);
    await once(socket, 'data');
    socket.pause();
    let before = -1;
    await eventually('it waits for the client', () => before === (before = read), { everyMs: 100 });
    expect(read).to.be.below(100);
    socket.destroy();
    before = -1;
    await eventually('it reads no more', () => before === (before = read), { everyMs: 100 });
    expect(read).to.be.below(100);
  });

  it('cuts the connection when the stored document is incomplete', async () => {
    const { tokenId } = await issued(600_000);
    await on.database.db
      .deleteFrom('document_parts')
      .where('token_id', '=', tokenId)
      .where('part', '=', 1)
      .execute();
    const text = await call(tokenId).then((answer) => answer.text().catch(() => 'it was cut'));
    expect(text).to.equal('it was cut');
    expect(JSON.stringify(app.log)).to.contain('DOCUMENT_INCOMPLETE');
  });
});
