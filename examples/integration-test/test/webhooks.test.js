import assert from 'node:assert/strict';
import { Buffer } from 'node:buffer';
import { after, before, describe, it } from 'mocha';
import { startDevnet } from 'transferable-document-service/devnet';

// Accounts of the local chain. The issuer is account 0.
const [CARRIER, BANK, BUYER] = [1, 2, 3];

describe('a Bill of Lading', () => {
  let devnet;
  let tokenId;

  before(async () => {
    // A chain, the service and a receiver, which is told of reorganisations too.
    devnet = await startDevnet({ retractions: true });
  });

  // Without this, Mocha would wait for the devnet for ever.
  after(async () => devnet?.stop());

  it('is issued, and its mint becomes a webhook', async () => {
    const subject = { type: ['BillOfLading'], scac: 'SGPU', blNumber: 'SGCNM21566325' };
    const issued = await devnet.issue(subject, { owner: CARRIER });
    tokenId = issued.tokenId;
    assert.equal(issued.document.credentialSubject.blNumber, 'SGCNM21566325');

    const minted = await devnet.webhooks.next({ type: 'minted', tokenId });
    assert.equal(minted.data.payload.owner, devnet.accounts[CARRIER].toLowerCase());
  });

  it('is handed over, and the transfer becomes a webhook', async () => {
    const remark = 'for collection';
    const { transactionHash } = await devnet.transferHolder(tokenId, { to: BANK, remark });

    // The mint emitted a holder_transfer too: the transaction tells them apart.
    const { data } = await devnet.webhooks.next({ type: 'holder_transfer', transactionHash });
    const { payload } = data;
    assert.equal(payload.toHolder, devnet.accounts[BANK].toLowerCase());
    assert.equal(Buffer.from(payload.remark.slice(2), 'hex').toString(), remark);
  });

  it('is not handed over by somebody else', async () => {
    await assert.rejects(devnet.transferHolder(tokenId, { to: BUYER, as: CARRIER }), {
      code: 'OPERATION_REFUSED',
      reason: 'CallerNotHolder',
    });
  });

  it('is delivered later if the receiver refuses it now', async () => {
    devnet.receiver.refuse(503);
    const { transactionHash } = await devnet.transferHolder(tokenId, { to: BUYER });
    await assert.rejects(devnet.webhooks.next({ transactionHash, withinMs: 1_000 }), {
      code: 'WEBHOOK_MISSING',
    });

    devnet.receiver.accept();
    await devnet.webhooks.next({ type: 'holder_transfer', transactionHash });
  });

  it('is retracted and delivered again when the chain is reorganised', async () => {
    const { id, data } = devnet.webhooks.events.at(-1);
    await devnet.reorganise(1);

    const { transactionHash } = data;
    const retraction = await devnet.webhooks.next({ type: 'retracted', transactionHash });
    assert.equal(retraction.data.retracts, id);
    await devnet.webhooks.next({ type: 'holder_transfer', transactionHash });
  });
});
