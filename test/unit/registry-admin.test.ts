import { PassThrough } from 'node:stream';
import { expect } from 'chai';
import { ZeroAddress, ZeroHash, toBeHex, type Interface } from 'ethers';
import { changeRole } from '../../cli/registry-admin/manage-roles';
import { confirm } from '../../cli/terminal/dialog';
import { explainRefusal, parseRevert } from '../../cli/registry-admin/explain-refusal';
import { remarkOf, remarkWarning } from '../../cli/registry-admin/remark';
import { ADMIN_ROLE, replayRoles, roleHashOf, roleNameOf } from '../../cli/registry-admin/roles';
import { codeOf } from '../../service/base/errors';
import { systemTime } from '../../service/base/time';
import type { ChainLog } from '../../service/chain/read-chain';
import { decryptRemark } from '../../service/issuance/remarks';
import { escrowInterface, registryInterface } from '../../service/registry/registry-contracts';
import { errorOf } from '../helpers/error-of';

const [ONE, TWO] = [
  '0x70997970C51812dc3A010C7d01b50e0d17dc79C8',
  '0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC',
];
const MINTER = roleHashOf('minter');

const codeThrown = (action: () => unknown): string | undefined => {
  try {
    action();
    return 'nothing';
  } catch (error) {
    return codeOf(error);
  }
};

describe('the roles of a registry', () => {
  it('have the names that the commands take; an unknown role keeps its hash', () => {
    for (const name of ['minter', 'accepter', 'restorer', 'admin'])
      expect(roleNameOf(roleHashOf(name))).to.equal(name);
    expect(roleHashOf('admin')).to.equal(ZeroHash);
    expect(roleNameOf(toBeHex(7, 32))).to.equal(toBeHex(7, 32));
    expect(codeThrown(() => roleHashOf('owner'))).to.equal('ARGUMENT_INVALID');
  });

  it('are granted by role name, and only to valid addresses', async () => {
    const grant = { role: 'minter', account: ONE };
    for (const wrong of [
      { account: ZeroAddress },
      { account: ONE.replace('C', 'c') },
      { account: ONE.slice(2) },
      { account: 'carrier.eth' },
      { role: 'owner' },
    ]) {
      const refused = await errorOf(changeRole(systemTime, 'grant', { ...grant, ...wrong }, () => undefined));
      expect(refused, JSON.stringify(wrong)).to.include({ code: 'ARGUMENT_INVALID' });
    }
  });

  it('are not granted to a private key, which the error does not print', async () => {
    const key = `0x${'ab'.repeat(32)}`;
    const grant = { role: 'minter', account: key };
    expect(String(await errorOf(changeRole(systemTime, 'grant', grant, () => undefined))))
      .to.contain('--account (66 characters) is not an address')
      .and.not.to.contain('abab');
  });

  const log = (
    name: 'RoleGranted' | 'RoleRevoked',
    role: string,
    account: string,
    block: number,
  ): ChainLog => {
    const { data, topics } = registryInterface.encodeEventLog(name, [role, account, TWO]);
    const place = {
      blockNumber: block,
      blockHash: '0x',
      transactionHash: '0x',
      transactionIndex: 0,
      index: 0,
    };
    return { ...place, address: '0x', data, topics };
  };

  it('have as holders the accounts whose last grant was not revoked', () => {
    const history = replayRoles([
      log('RoleGranted', ADMIN_ROLE, ONE, 1),
      log('RoleGranted', MINTER, ONE, 1),
      log('RoleRevoked', MINTER, ONE, 5),
      log('RoleGranted', MINTER, TWO, 6),
      log('RoleGranted', MINTER, ONE, 8),
      log('RoleRevoked', MINTER, TWO, 9),
    ]);
    expect(history.holders).to.deep.equal([
      { role: ADMIN_ROLE, account: ONE, sinceBlock: 1, grantedBy: TWO },
      { role: MINTER, account: ONE, sinceBlock: 8, grantedBy: TWO },
    ]);
    expect(history.everybody).to.have.length(3);
    expect(history.roles).to.deep.equal([ADMIN_ROLE, MINTER]);
  });

  it('have an incomplete history if one is granted twice, or revoked without a grant', () => {
    const granted = log('RoleGranted', MINTER, ONE, 1);
    expect(codeThrown(() => replayRoles([granted, granted]))).to.equal('ROLE_HISTORY_INCOMPLETE');
    expect(codeThrown(() => replayRoles([log('RoleRevoked', MINTER, ONE, 2)]))).to.equal(
      'ROLE_HISTORY_INCOMPLETE',
    );
  });
});

describe('the remark of the registry admin', () => {
  const location = { chainId: 31337, registry: ONE, tokenId: 1n };
  const found = { location, credentialId: 'urn:uuid:0192f3c8-5a00-7000-8000-000000000001' };

  it('is encrypted under the credential id, or plain with a warning if there is no credential', () => {
    const encrypted = remarkOf('Größe', { found, flag: undefined });
    expect(decryptRemark(encrypted.hex, found.credentialId)).to.deep.equal({ kind: 'text', text: 'Größe' });
    expect(remarkWarning(encrypted)).to.deep.equal([]);
    const plain = remarkOf('Größe', { found: undefined, flag: undefined });
    expect(plain).to.deep.equal({ hex: `0x${Buffer.from('Größe').toString('hex')}`, isEncrypted: false });
    expect(decryptRemark(plain.hex, found.credentialId)).to.have.property('kind', 'plain text');
    expect(remarkWarning(plain)).to.have.length(1);
  });

  it('may be absent unless --credential is given; a credential without an id is refused', () => {
    const none = remarkOf(undefined, { found, flag: undefined });
    expect(none).to.deep.equal({ hex: '0x', isEncrypted: false });
    expect(remarkWarning(none)).to.deep.equal([]);
    expect(codeThrown(() => remarkOf(undefined, { found, flag: 'a.json' }))).to.equal('ARGUMENT_INVALID');
    const nameless = { location, credentialId: undefined };
    expect(codeThrown(() => remarkOf('x', { found: nameless, flag: undefined }))).to.equal(
      'CREDENTIAL_INVALID',
    );
  });
});

describe("the explanation of a registry's refusal", () => {
  const explain = (data: string, call = {}): string =>
    explainRefusal(parseRevert(data), { remarkBytes: 130, flags: '', ...call });

  it('names the cause and the remedy, with the flags of the call', () => {
    const abi: Interface = registryInterface;
    const error = (name: string, values: unknown[] = []): string => abi.encodeErrorResult(name, values);
    const unauthorized = error('AccessControlUnauthorizedAccount', [ONE, MINTER]);
    const unknownRole = toBeHex(7, 32);
    // The command named another registry than the settings.
    const elsewhere = { flags: ' --registry 0x1 --network amoy', adminOf: ADMIN_ROLE };
    for (const [data, call, text] of [
      [unauthorized, { adminOf: ADMIN_ROLE }, `The wallet ${ONE} has no minter role`],
      [
        unauthorized,
        { adminOf: ADMIN_ROLE },
        'with the admin role can grant it (`npx tdoc role grant --role minter',
      ],
      [unauthorized, { adminOf: unknownRole }, `Accounts with the ${unknownRole} role can`],
      [unauthorized, elsewhere, `--account ${ONE} --registry 0x1 --network amoy\``],
      [error('EnforcedPause'), {}, 'npx tdoc unpause'],
      [error('EnforcedPause'), elsewhere, '`npx tdoc unpause --registry 0x1 --network amoy`'],
      [error('ExpectedPause'), {}, 'not paused'],
      [error('RemarkLengthExceeded'), {}, '130 bytes in UTF-8: 120 are allowed'],
      [error('TokenNotReturnedToIssuer'), { tokenState: 'in escrow' }, 'must return it'],
      [error('TokenNotReturnedToIssuer'), { tokenState: 'shredded' }, 'was shredded'],
      [escrowInterface.encodeErrorResult('InactiveTitleEscrow'), {}, 'was shredded'],
      [error('TransferFailure'), {}, 'docs/states.md'],
      ['0x', {}, 'no reason'],
    ] as const)
      expect(explain(data, call)).to.contain(text);
    const unnamed = error('AccessControlUnauthorizedAccount', [ONE, unknownRole]);
    expect(explain(unnamed)).not.to.contain('role grant');
  });
});

describe('the confirmation of an irreversible action', () => {
  const ask = async (answer: string | undefined, isTTY = true): Promise<string> => {
    const input = Object.assign(new PassThrough(), { isTTY });
    const output = new PassThrough();
    const agreed = confirm('burn', false, { input, output });
    if (answer === undefined) input.end();
    else input.write(`${answer}\n`);
    return agreed.then(
      () => 'agreed',
      (error: unknown) => codeOf(error) ?? String(error),
    );
  };

  it('requires the exact word, typed at a terminal', async () => {
    expect(await ask('burn')).to.equal('agreed');
    for (const answer of ['', 'y', 'yes', 'BURN', undefined])
      expect(await ask(answer)).to.equal('CONFIRMATION_MISSING');
  });

  it('is missing without a terminal, and not requested if it was given already', async () => {
    expect(await ask('burn', false)).to.equal('CONFIRMATION_MISSING');
    const input = Object.assign(new PassThrough(), { isTTY: false });
    await confirm('burn', true, { input, output: new PassThrough() });
  });
});
