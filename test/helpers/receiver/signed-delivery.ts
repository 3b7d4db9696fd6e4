import { generateKeyPairSync, sign, type KeyObject } from 'node:crypto';
import type { Retraction, TestEvent } from '../../../client/events';
import { toCloudEvent, type CloudEvent } from '../../../service/events/cloud-event';

/** A body and the headers of its sender. */
export interface Delivery {
  body: Buffer;
  headers: Record<string, string>;
}

/** A sender of webhooks: a key, and deliveries signed with it. */
export interface Sender {
  publicKey: KeyObject;
  publicKeyPem: string;
  /** Signs any bytes. */
  signed(body: Buffer | string): Delivery;
}

/** A sender with a new key. */
export function newSender(): Sender {
  const { publicKey, privateKey } = generateKeyPairSync('ed25519');
  return {
    publicKey,
    publicKeyPem: publicKey.export({ type: 'spki', format: 'pem' }).toString(),
    signed(text) {
      const body = Buffer.from(text);
      const signature = sign(null, body, privateKey).toString('base64url');
      return {
        body,
        headers: { 'content-type': 'application/json', 'x-service-signature': `ed25519=${signature}` },
      };
    },
  };
}

/** An event of a local chain. The same number gives the same event. */
export function sampleEvent(number: number): CloudEvent {
  const registry = { chainKey: 'hardhat', chainId: 31337, registryAddress: `0x${'5b'.repeat(20)}` };
  return toCloudEvent(
    {
      type: 'holder_transfer',
      tokenId: 0xabcn,
      blockNumber: 100 + number,
      blockHash: `0x${'b1'.repeat(32)}`,
      blockTimestamp: 1_750_000_000,
      transactionHash: `0x${number.toString(16).padStart(64, '0')}`,
      logIndex: 3,
      blockLogIndex: 3,
      payload: { fromHolder: `0x${'01'.repeat(20)}`, toHolder: `0x${'02'.repeat(20)}`, remark: '0x' },
    },
    registry,
  );
}

/** The retraction of the sample event of this number. */
export function sampleRetraction(number: number): Retraction {
  const { id: retracts, type, source, subject, data } = sampleEvent(number);
  const { chainKey, chainId, registryAddress, tokenId, tokenIdHex = '' } = data;
  const { blockNumber, transactionHash, logIndex } = data;
  const retracted = { type, blockNumber, transactionHash, logIndex };
  const ofToken = { chainKey, chainId, registryAddress, tokenId, tokenIdHex };
  return {
    ...sampleEnvelope(number),
    source,
    type: 'com.service.etr.retracted',
    subject,
    data: { ...ofToken, retracts, retracted },
  };
}

/** A test event. */
export function sampleTest(number: number): TestEvent {
  const subscription = '0192f3c8-5a00-7000-8000-000000000001';
  return {
    ...sampleEnvelope(1000 + number),
    source: `urn:service:subscriptions:${subscription}`,
    type: 'com.service.etr.test',
    data: { subscription, test: true },
  };
}

function sampleEnvelope(number: number) {
  return {
    specversion: '1.0',
    id: `01a20301-e52c-7491-a676-${String(number).padStart(12, '0')}`,
    datacontenttype: 'application/json',
    time: '2026-11-21T08:15:53.000Z',
  } as const;
}

/** Posts a delivery, and returns the status and text of the answer. */
export async function post(
  url: string,
  { body, headers }: Delivery,
): Promise<{ status: number; text: string }> {
  const response = await fetch(url, { method: 'POST', body: new Uint8Array(body), headers });
  return { status: response.status, text: await response.text() };
}
