import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { expect } from 'chai';
import {
  dataLength,
  decodeRlp,
  encodeRlp,
  getBytes,
  hexlify,
  keccak256,
  toBeArray,
  Transaction,
} from 'ethers';
import { PROJECT_ROOT } from '../../service/base/project-root';
import {
  decodeHeader,
  decodeReceiptLogs,
  encodeHeader,
  encodeReceipt,
  encodeTransaction,
  type Answer,
} from '../../service/evidence/block-encoding';
import { maskedCodeHash, PUBLISHED_CODE } from '../../service/evidence/published-contracts';
import { keyAt, openTrie, proveListed } from '../../service/evidence/tries';
import geth from '../fixtures/geth-chain.json';
import { seededRandom } from '../helpers/seeded-random';

/** Answers of a node about a block; `source` in the file says where they were published. */
interface MainnetBlock {
  header: Answer;
  receipts: Answer[];
  /** The proof of the proposer's account (EIP-1186). */
  proof: Record<'address' | 'nonce' | 'balance' | 'storageHash' | 'codeHash', string> & {
    accountProof: string[];
  };
}

describe('the encodings of evidence', () => {
  const receipts = geth.receipts.map(({ root, receipts: all }) => ({
    root,
    encoded: all.map((one: Answer) => encodeReceipt(one)),
    logs: all.map(({ logs }) => logs.length),
  }));

  it('have the hashes of geth for the headers of each fork', () => {
    for (const header of geth.headers) {
      const encoded = encodeHeader(header) ?? '';
      expect(keccak256(encoded)).to.equal(header.hash);
      const { number, timestamp, stateRoot, receiptsRoot } = decodeHeader(encoded);
      expect([number, timestamp]).to.deep.equal([Number(header.number), Number(header.timestamp)]);
      expect([stateRoot, receiptsRoot]).to.deep.equal([header.stateRoot, header.receiptsRoot]);
    }
  });

  it('place the fields of XDC before those that upgrades added, and give up on unknown fields', () => {
    const london = geth.headers.find((header) => 'baseFeePerGas' in header && !('withdrawalsRoot' in header));
    const standard = decodeRlp(encodeHeader(london ?? {}) ?? '') as string[];
    const own = { validators: '0x', validator: `0x${'11'.repeat(65)}`, penalties: '0x22' };
    // XDPoSChain, core/types/block.go: 15 fields of Ethereum, these three, the base fee.
    const encoded = encodeRlp([...standard.slice(0, 15), ...Object.values(own), ...standard.slice(15)]);
    expect(encodeHeader({ ...london, ...own, hash: keccak256(encoded) })).to.equal(encoded);
    expect(encodeHeader({ ...london, ...own, hash: keccak256('0x') })).to.equal(undefined);
  });

  it('have the hashes of geth for transactions of all types, of which ethers reads the signer', () => {
    expect(geth.transactions.map(({ type }) => Number(type)).sort()).to.include.members([0, 1, 2, 3, 4]);
    for (const transaction of geth.transactions) {
      const encoded = encodeTransaction(transaction) ?? '';
      expect(keccak256(encoded), transaction.type).to.equal(transaction.hash);
      expect(Transaction.from(encoded).from?.toLowerCase()).to.equal(transaction.from);
    }
  });

  it('make the roots of geth for receipts with a status, and for older ones with a state root', async () => {
    for (const { root, encoded, logs } of receipts) {
      const proven = await proveListed(encoded, [1]);
      expect(proven.root).to.equal(root);
      const read = openTrie(root, proven.nodes);
      expect(read(keyAt(1))).to.equal(encoded[1]);
      expect(decodeReceiptLogs(encoded[1] ?? '')).to.have.length(logs[1] ?? 0);
    }
  });

  it('have the hashes of a block of Ethereum, of its 202 receipts and of an account', async () => {
    const file = readFileSync(join(PROJECT_ROOT, 'test/fixtures/mainnet-block.json.gz'));
    const { header, receipts: all, proof } = JSON.parse(gunzipSync(file).toString()) as MainnetBlock;
    const { stateRoot, receiptsRoot } = decodeHeader(encodeHeader(header) ?? '');
    const encodedReceipts = all.map(encodeReceipt);
    const { root, nodes } = await proveListed(encodedReceipts, [0, 127, 128, 201]);
    expect(root).to.equal(receiptsRoot);
    const read = openTrie(root, nodes);
    for (const position of [0, 127, 128, 201])
      expect(read(keyAt(position))).to.equal(encodedReceipts[position]);
    expect(read(keyAt(1))).to.equal(undefined);
    const { address, accountProof, nonce, balance, storageHash, codeHash } = proof;
    const account = openTrie(stateRoot, accountProof, { isSecure: true });
    const numbers = [nonce, balance].map((number) => toBeArray(number));
    expect(account(address)).to.equal(encodeRlp([...numbers, storageHash, codeHash]));
  });

  it('prove nothing with a node left out, changed, or of another trie', async () => {
    const [{ root, encoded }, other] = receipts as [(typeof receipts)[0], (typeof receipts)[0]];
    const { nodes } = await proveListed(encoded, [0, 1, 2, 3]);
    for (const [index, node] of nodes.entries()) {
      const last = node.endsWith('0') ? '1' : '0';
      const changed = nodes.with(index, node.slice(0, -1) + last);
      for (const given of [nodes.toSpliced(index, 1), changed]) {
        const read = openTrie(root, given);
        const values = [0, 1, 2, 3].map((position) => read(keyAt(position)));
        for (const [position, value] of values.entries())
          expect(value).to.be.oneOf([undefined, encoded[position]]);
        expect(values).to.include(undefined);
      }
    }
    const foreign = openTrie(other.root, nodes);
    expect(foreign(keyAt(0))).to.equal(undefined);
  });

  it('prove all that the library puts into a trie, and that there is nothing else', async () => {
    const { createMPT, createMerkleProof } = await import('@ethereumjs/mpt');
    const random = seededRandom(1);
    for (const useKeyHashing of [false, true]) {
      const trie = await createMPT({ useKeyHashing });
      // Short values are in the nodes above them.
      const values = new Map(
        Array.from({ length: 60 }, () => [random.hex(2), random.hex(random.pick([1, 40]))]),
      );
      for (const [key, value] of values) await trie.put(getBytes(key), getBytes(value));
      const root = hexlify(trie.root());
      for (const key of [...values.keys(), random.hex(2), random.hex(2), random.hex(2)]) {
        const nodes = (await createMerkleProof(trie, getBytes(key))).map((node) => hexlify(node));
        const read = openTrie(root, nodes, { isSecure: useKeyHashing });
        expect(read(key), key).to.equal(values.get(key) ?? '0x');
      }
    }
  });

  it('are read often and of many nodes that lead nowhere, and prove nothing then', () => {
    const nodes = [encodeRlp(['0x20', '0x01'])];
    while (nodes.length < 2_000) nodes.push(encodeRlp(['0x00', keccak256(nodes.at(-1) ?? '')]));
    // A leaf with another path proves that there is nothing else.
    const leaf = encodeRlp([`0x20${'00'.repeat(100_000)}`, '0x']);
    nodes.push(leaf, encodeRlp(['0x20', '0x01', '0x02']));
    for (const root of [...nodes.slice(-3), '0x', '0x80', '0xff']) {
      const read = openTrie(keccak256(root), nodes);
      for (let position = 0; position < 5_000; position++)
        expect(read(keyAt(position))).to.equal(root === leaf ? '0x' : undefined);
    }
  });

  it('are made of a receipt with as many logs as a block may have', () => {
    // A log costs 375 gas and what its loop takes. Copying all logs for each of them takes twenty minutes.
    const log = { address: `0x${'11'.repeat(20)}`, topics: [`0x${'22'.repeat(32)}`], data: '0x' };
    const logs = Array<typeof log>(70_000).fill(log);
    const receipt = { type: '0x2', status: '0x1', cumulativeGasUsed: '0x1', logsBloom: '0x', logs };
    const read = decodeReceiptLogs(encodeReceipt(receipt));
    expect([read.length, read[0], read.at(-1)]).to.deep.equal([logs.length, log, log]);
  });

  it('know the code of the contracts that TradeTrust publishes', () => {
    const folder = join(PROJECT_ROOT, 'node_modules/@tradetrust-tt/token-registry/dist/artifacts');
    const files = {
      registry: 'presets/TradeTrustTokenStandard.sol/TradeTrustTokenStandard',
      titleEscrowFactory: 'TitleEscrowFactory.sol/TitleEscrowFactory',
      titleEscrow: 'TitleEscrow.sol/TitleEscrow',
    } as const;
    for (const [name, file] of Object.entries(files)) {
      const text = readFileSync(join(folder, `${file}.json`), 'utf8');
      const { deployedBytecode } = JSON.parse(text) as { deployedBytecode: string };
      expect(maskedCodeHash(deployedBytecode), name).to.equal(PUBLISHED_CODE[name as keyof typeof files]);
      const byte = deployedBytecode.slice(200, 202) === 'ff' ? '00' : 'ff';
      const changed = `${deployedBytecode.slice(0, 200)}${byte}${deployedBytecode.slice(202)}`;
      expect(dataLength(changed)).to.equal(dataLength(deployedBytecode));
      expect(maskedCodeHash(changed), name).not.to.equal(maskedCodeHash(deployedBytecode));
    }
  });
});
