import { expect } from 'chai';
import type { JsonObject } from '../../service/issuance/credential';
import type { Answer } from '../../service/verification/answer';
import type { VerificationSources } from '../../service/verification/verify-credential';
import { IN_ESCROW, failingWith } from '../helpers/credentials/fake-sources';
import { prepareVerification, type Verify } from '../helpers/credentials/verification-parts';

describe('the status of a verified credential', () => {
  let base: JsonObject;
  let derived: JsonObject;
  let verify: Verify;

  before(async () => {
    ({ base, derived, verify } = await prepareVerification());
  });

  const status = async (
    changes: Partial<VerificationSources>,
    credential: JsonObject = derived,
  ): Promise<Answer> => (await verify(credential, changes)).documentStatus;
  const inState = (state: object) => status({ readToken: async () => ({ ...IN_ESCROW, ...state }) });

  it('is valid in title escrow, returned to the issuer or in a paused registry, and says which', async () => {
    const [beneficiary, holder] = [`0x${'be'.repeat(20)}`, `0x${'f0'.repeat(20)}`];
    const parties = `beneficiary ${beneficiary}, holder ${holder}, nominee`;
    for (const [state, text] of [
      [{}, 'in its title escrow'],
      [{ beneficiary, holder }, `${parties} nobody`],
      [{ beneficiary, holder, nominee: holder }, `${parties} ${holder}`],
      [{ state: 'returned to issuer' }, 'nobody can transfer it now'],
      [{ isPaused: true }, 'paused'],
    ] as const) {
      const answer = await inState(state);
      expect(answer.outcome).to.equal('valid');
      expect(JSON.stringify(answer.checks)).to.contain(text);
    }
  });

  it('is invalid if a token is shredded or not minted, or no token registry is at the address', async () => {
    for (const state of ['shredded', 'not minted'])
      expect(await inState({ state })).to.include({ outcome: 'invalid' });
    for (const code of ['REGISTRY_MISSING', 'REGISTRY_INVALID'] as const)
      expect(await status({ readToken: failingWith(code) })).to.include({ outcome: 'invalid' });
  });

  it("is 'could not tell' if the token cannot be read, and hides library messages with keys", async () => {
    const ofNode = ['RPC_UNREACHABLE', 'NETWORK_UNKNOWN', 'CONFIGURATION_INVALID'] as const;
    for (const code of [...ofNode, 'TOKEN_OWNER_UNEXPECTED'] as const)
      expect((await status({ readToken: failingWith(code) })).outcome, code).to.equal('could not tell');
    const readToken: VerificationSources['readToken'] = async () => {
      throw Object.assign(new Error('https://node.example/v3/secret'), { code: 'SERVER_ERROR' });
    };
    const answer = await status({ readToken });
    expect(answer.outcome).to.equal('could not tell');
    expect(JSON.stringify(answer)).to.contain('SERVER_ERROR').and.not.to.contain('secret');
  });

  it("is 'could not tell' if it is hidden, repeated, or of another type or document", async () => {
    const own = derived.credentialStatus as JsonObject;
    for (const credentialStatus of [
      undefined,
      { type: 'BitstringStatusListEntry' },
      [own, own],
      { ...own, tokenId: 'ab'.repeat(32) },
    ])
      expect((await status({}, { ...derived, credentialStatus })).outcome).to.equal('could not tell');
  });

  it('is invalid if it is malformed', async () => {
    for (const credentialStatus of [null, 'x', {}, { type: 'TransferableRecords', tokenRegistry: '0x1' }])
      expect((await status({}, { ...derived, credentialStatus })).outcome).to.equal('invalid');
  });

  it('is invalid outside the validity period, with a tolerance of five minutes', async () => {
    const at = async (time: string): Promise<string> =>
      (await status({ clock: { now: () => Date.parse(time) } })).outcome;
    expect(await at('2025-12-31T23:54:00Z')).to.equal('invalid');
    expect(await at('2025-12-31T23:56:00Z')).to.equal('valid');
    expect(await at('2026-04-01T00:04:00Z')).to.equal('valid');
    expect(await at('2026-04-01T00:06:00Z')).to.equal('invalid');
  });

  it('reads years after 9999, as XML Schema and ECMAScript write them', async () => {
    for (const year of ['10000', '+010000', '12026', '275760', '999999', '12345678901234567890']) {
      const date = `${year}-01-01T00:00:00.5+14:00`;
      expect((await status({}, { ...derived, validUntil: date })).outcome, date).to.equal('valid');
      expect((await status({}, { ...derived, validFrom: date })).outcome, date).to.equal('invalid');
    }
    for (const year of ['999', '-2026', '+-2026', '99999999e3'])
      expect(
        (await status({}, { ...derived, validUntil: `${year}-01-01T00:00:00Z` })).outcome,
        year,
      ).to.equal('could not tell');
  });

  it("is 'could not tell' if the end of the period is missing or unreadable", async () => {
    for (const credential of [base, derived])
      expect((await status({}, { ...credential, validUntil: undefined })).outcome).to.equal('could not tell');
    expect((await status({}, { ...derived, validUntil: 'tomorrow' })).outcome).to.equal('could not tell');
  });
});
