import { createRequire } from 'node:module';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { compileFunction } from 'node:vm';
import { expect } from 'chai';
import * as ethers from 'ethers';
import { tokenLines } from '../../cli/token/token-report';
import { decryptRemark } from '../../service/issuance/remarks';
import { tokenIdHexOf } from '../../service/registry/token-id-forms';
import packageJson from '../../package.json';
import { historyOf, mintDirectly } from '../helpers/chain/direct-mint';
import { PHRASE } from '../helpers/chain/forkable-chain';
import { quoted, readDocument, tables } from '../helpers/pages/markdown';
import { TOKEN_OPERATIONS } from '../helpers/chain/token-model';
import { createLocalSetup, type LocalSetup } from '../helpers/chain/local-setup';

const ID = 'urn:uuid:0192f3c8-5a00-7000-8000-000000000001';
const OF_THE_REGISTRY = ['mint', 'restore', 'burn'];

/** Polls often, so that it sees mined transactions at once. */
class EagerProvider extends ethers.JsonRpcProvider {
  constructor(...[url, network, options]: ConstructorParameters<typeof ethers.JsonRpcProvider>) {
    super(url, network, { ...options, pollingInterval: 20 });
  }
}

const load = createRequire(__filename);
const loadEagerly = (name: string): unknown =>
  name === 'ethers' ? { ...ethers, JsonRpcProvider: EagerProvider } : load(name);

describe('docs/holders.md', () => {
  const page = readDocument('docs/holders.md');
  const script = page.code("With TrustVC's library", 'js');
  const rows = (tables(page.section('Operations'))[0] ?? []).map((cells) =>
    cells.map((cell) => quoted(cell)[0]),
  );
  let local: LocalSetup;
  let tokenId: bigint;
  let file: string;

  before(async () => {
    local = await createLocalSetup();
    ({ tokenId } = await mintDirectly(local, await local.account(1)));
    file = join(local.folder, 'answer.json');
    const credentialStatus = { tokenRegistry: local.registryAddress, tokenId: tokenIdHexOf(tokenId) };
    writeFileSync(file, JSON.stringify({ signedW3CDocument: { id: ID, credentialStatus } }));
  });

  /** Runs the page's script as one of the node's accounts; resolves to what it prints. */
  async function act(account: number, operation: string, params: object): Promise<string> {
    const key = ethers.HDNodeWallet.fromPhrase(PHRASE, undefined, `m/44'/60'/0'/0/${account}`).privateKey;
    const process = {
      argv: ['node', 'act.cjs', file, operation, JSON.stringify(params)],
      env: { RPC_URL: local.node.url, PRIVATE_KEY: key },
    };
    return new Promise((resolve) => {
      const run = compileFunction(script, ['require', 'process', 'console']) as (
        ...globals: unknown[]
      ) => void;
      run(loadEagerly, process, { log: resolve });
    });
  }

  it('has a row for every operation of a title escrow', () => {
    const expected = TOKEN_OPERATIONS.filter((operation) => !OF_THE_REGISTRY.includes(operation));
    expect(rows.map(([operation]) => operation)).to.have.members(expected);
  });

  it('performs each operation with its script, with remarks that the credential decrypts', async () => {
    const [one, three] = [await local.account(1), await local.account(3)];
    const steps: [account: number, operation: string, ...named: string[]][] = [
      [1, 'nominate', three],
      [1, 'transferBeneficiary', three],
      [3, 'rejectTransferBeneficiary'],
      [1, 'transferHolder', three],
      [3, 'rejectTransferHolder'],
      [1, 'transferOwners', three, three],
      [3, 'rejectTransferOwners'],
      [1, 'returnToIssuer'],
    ];
    const printed: string[] = [];
    for (const [account, operation, ...named] of steps) {
      const params = rows.find(([name]) => name === operation)?.[2] ?? '';
      const filled = JSON.parse(params.replaceAll('0x…', () => named.shift() ?? '')) as object;
      printed.push(await act(account, operation, { ...filled, remarks: `remark of ${operation}` }));
    }
    const history = await historyOf(local, tokenId);
    const { endorsements, state } = history;
    const found = endorsements.slice(1);
    expect(found.map(({ operation, transactionHash }) => [operation, transactionHash])).to.deep.equal(
      steps.map(([, operation], index) => [operation, printed[index]]),
    );
    for (const { operation, remark } of found)
      expect(decryptRemark(remark, ID)).to.deep.equal({ kind: 'text', text: `remark of ${operation}` });
    expect(state).to.include({ state: 'returned to issuer', beneficiary: one, holder: one });
    // The command that lists the next operations names this page.
    const location = { chainId: 31337, registry: local.registryAddress, tokenId };
    expect(tokenLines({ location, credentialId: ID }, history, 'localhost')).to.include(
      'Possible next operations (docs/holders.md lists the tools)',
    );
  });

  it('names the library version that these tests use', () => {
    const version = packageJson.devDependencies['@trustvc/trustvc'];
    expect(page.code("With TrustVC's library", 'sh')).to.contain(`@trustvc/trustvc@${version} `);
  });
});
