import {
  concat,
  dataSlice,
  decodeRlp,
  encodeRlp,
  toBeHex,
  Transaction,
  Wallet,
  ZeroAddress,
  type TransactionLike,
} from 'ethers';
import { DEPLOYER_KEY } from './local-setup';

const ORDER = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n;

/** An account without rights. */
export const STRANGER = new Wallet(`0x${'57'.repeat(32)}`);

/** The wanted transaction with other fields, signed with a key. */
function signedBy(wallet: Wallet, wanted: string, others: TransactionLike = {}): Promise<string> {
  const { type, to, data, chainId, nonce, gasLimit, gasPrice, maxFeePerGas, maxPriorityFeePerGas } =
    Transaction.from(wanted);
  const fees = type === 2 ? { maxFeePerGas, maxPriorityFeePerGas } : { gasPrice };
  return wallet.signTransaction({ type, to, data, chainId, nonce, gasLimit, ...fees, ...others });
}

/** The other valid signature of a transaction of type 2, which nodes refuse. */
function withHighS(wanted: string): string {
  const fields = decodeRlp(dataSlice(wanted, 1)) as string[];
  const [yParity, r = '0x', s = '0x'] = fields.slice(-3);
  const signature = [yParity === '0x' ? '0x01' : '0x', r, toBeHex(ORDER - BigInt(s))];
  return concat(['0x02', encodeRlp([...fields.slice(0, -3), ...signature])]);
}

const own = new Wallet(DEPLOYER_KEY);

/** A signer's answers that are not the wanted transaction, by what is wrong with them. */
export const LIES: Record<string, (wanted: string) => unknown> = {
  'another nonce': (wanted) => signedBy(own, wanted, { nonce: Transaction.from(wanted).nonce + 1 }),
  'another recipient': (wanted) => signedBy(own, wanted, { to: ZeroAddress }),
  'other data': (wanted) => signedBy(own, wanted, { data: '0x' }),
  'a transfer of currency': (wanted) => signedBy(own, wanted, { value: 1n }),
  'a higher fee': (wanted) => signedBy(own, wanted, { maxFeePerGas: 10n ** 15n }),
  'another chain': (wanted) => signedBy(own, wanted, { chainId: 1n }),
  'an access list': (wanted) =>
    signedBy(own, wanted, { accessList: [{ address: STRANGER.address, storageKeys: [] }] }),
  'another key': (wanted) => signedBy(STRANGER, wanted),
  'a high s': withHighS,
  'no signature': (wanted) => Transaction.from(wanted).unsignedSerialized,
  'an object': (wanted) => ({ raw: wanted }),
  'no hexadecimal': () => 'signed',
  null: () => null,
};
