import { expect } from 'chai';
import type { IncomingHttpHeaders } from 'node:http';
import { MINT_EVENTS } from '../../devnet/bill-of-lading';
import { createClient } from '../../client/create-client';
import { timelineOf } from '../../client/timeline';
import minimal from '../fixtures/bill-of-lading-minimal.json';
import { escrowOf, transferHolder } from '../helpers/chain/direct-mint';
import { localSetupOfSuite } from '../helpers/chain/local-setup';
import { ENGINES, newState } from '../helpers/database/engines';
import { eventually } from '../helpers/eventually';
import { create } from '../helpers/processes/create-call';
import { API_KEY, AUTHORIZATION } from '../helpers/processes/documents-call';
import { startOtlpCollector, type CollectedSpan } from '../helpers/processes/otlp-collector';
import { startServiceProcess } from '../helpers/processes/service-process';
import { startRecordingReceiver } from '../helpers/receiver/recording-receiver';

const TRACE_ID = '4bf92f3577b34da6a3ce929d0e0e4736';
const SPAN_ID = '00f067aa0ba902b7';
const ADMIN_API_KEY = 'the-admin-key-of-the-trace-0123456789';
/** The stages in which a document was issued, and in which its events were delivered. */
const ISSUED = ['POST /create/{documentId}', 'sign', 'eth_sendRawTransaction', 'mint', 'block', 'read'];
const DELIVERED = ['queue', 'POST'];

const traceIdOf = ({ traceparent }: IncomingHttpHeaders): string => String(traceparent).slice(3, 35);

describe('the trace of a document', () => {
  const local = localSetupOfSuite();

  for (const engine of ENGINES) {
    const over = engine === 'SQLite' ? 'kill -9' : 'two processes';
    it(`reaches the receiver over ${over} (${engine})`, async function () {
      await using state = await newState(engine);
      if (state === undefined) return this.skip();
      await using collector = await startOtlpCollector();
      await using receiver = await startRecordingReceiver(local.publicKeyFile);
      const START_BLOCK = String((await local.client.getBlockNumber()) + 1);
      const settings = {
        ...{ ...local.settings, ...state.settings, ...collector.settings },
        ...{ START_BLOCK, API_KEY, ADMIN_API_KEY, ALLOW_PRIVATE_SINKS: 'true', WEBHOOK_URL: '' },
      };
      const ofTrace = (): CollectedSpan[] => collector.spans.filter(({ traceId }) => traceId === TRACE_ID);
      const haveSpans = (names: readonly string[], times: number) =>
        eventually(`${times} spans of ${names.join(', ')}`, () =>
          names.every((name) => ofTrace().filter((span) => span.name === name).length === times),
        );
      const issuing = await startServiceProcess(settings);
      const owner = await local.account(1);
      const headers = {
        ...AUTHORIZATION,
        traceparent: `00-${TRACE_ID}-${SPAN_ID}-01`,
        tracestate: 'vendor=secret',
      };
      const created = await create(issuing.url, { owner, holder: owner, ...minimal }, { headers });
      expect(created.status, issuing.output()).to.equal(200);
      const { tokenId } = created.body.signedW3CDocument.credentialStatus;
      await haveSpans(ISSUED, 1);
      if (engine === 'SQLite') await issuing.end('SIGKILL');
      const delivering = await startServiceProcess({ ...settings, WEBHOOK_URL: receiver.url });
      const { deliveries } = receiver;
      await eventually('the events of the mint', () => deliveries.length === MINT_EVENTS.length);
      await haveSpans(DELIVERED, MINT_EVENTS.length);

      const headersOf = deliveries.map((delivery) => delivery.headers);
      // A second header would be joined to the first, and both invalid.
      for (const { traceparent } of headersOf) expect(traceparent).to.have.lengthOf(55);
      expect(headersOf.map(traceIdOf)).to.deep.equal(MINT_EVENTS.map(() => TRACE_ID));
      expect(new Set(headersOf.map(({ traceparent }) => traceparent)).size).to.equal(MINT_EVENTS.length);
      expect(headersOf.filter((sent) => 'tracestate' in sent)).to.deep.equal([]);
      const spans = ofTrace();
      const ids = new Set([SPAN_ID, ...spans.map(({ spanId }) => spanId)]);
      expect(spans.filter(({ parentSpanId = '' }) => !ids.has(parentSpanId))).to.deep.equal([]);
      for (const { traceparent } of headersOf) expect(ids).to.include(String(traceparent).slice(36, 52));
      expect(JSON.stringify(collector.spans)).not.to.contain(minimal.credentialSubject.blNumber);
      expect(collector.spans.filter(({ name }) => name === 'undici')).to.deep.equal([]);
      expect(issuing.output()).to.contain(`"traceId":"${TRACE_ID}"`);
      expect(delivering.output()).to.match(new RegExp(`"traceId":"${TRACE_ID}".*"msg":"delivered"`));

      const client = createClient({ url: delivering.url, key: ADMIN_API_KEY });
      const { data: token } = await client.GET('/tokens/{tokenId}', { params: { path: { tokenId } } });
      expect(token?.issuing?.traceId).to.equal(TRACE_ID);
      const stages = token ? timelineOf(token).map(({ stage }) => stage) : [];
      const once = ['request', 'signature', 'mint', 'block', 'reading'];
      expect(stages.slice(0, once.length)).to.have.members(once);
      expect(stages.slice(once.length).sort()).to.deep.equal(
        ['delivery', 'queue'].flatMap((stage) => MINT_EVENTS.map(() => stage)),
      );

      const id = BigInt(`0x${tokenId}`);
      const minted = { tokenId: id, escrow: await escrowOf(local, id) };
      await transferHolder(local, minted, { from: owner, to: await local.account(5) });
      const later = await eventually('the event of a later operation', () => deliveries[MINT_EVENTS.length]);
      const laterId = traceIdOf(later.headers);
      expect(laterId)
        .to.match(/^(?!0{32})[0-9a-f]{32}$/)
        .and.not.equal(TRACE_ID);
      const read = await eventually('its span', () =>
        collector.spans.find(({ name, traceId }) => name === 'read' && traceId === laterId),
      );
      expect(read.links.map(({ traceId }) => traceId)).to.deep.equal([TRACE_ID]);
    });
  }
});
