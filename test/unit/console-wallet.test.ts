import { expect } from 'chai';
import { toUtf8String, Wallet } from 'ethers';
import type { keyOfWallet } from '../../console/frame/wallet';
import { readLoginMessage } from '../../service/access/login-message';

/** Only the compiler of console/ knows the types of a browser, which this module needs. */
const MODULE: string = '../../console/frame/wallet';

const PLACE = { domain: 'carrier.example', chainIds: [1, 80002] };
const PAGE = { host: 'carrier.example', origin: 'https://carrier.example' };

describe("a wallet of the console's page", () => {
  const wallet = Wallet.createRandom();
  let logIn: typeof keyOfWallet;
  /** Answers to the methods. */
  let answers: Record<string, () => unknown>;
  let asked: string[];
  let signed: string | undefined;

  before(async () => {
    ({ keyOfWallet: logIn } = (await import(MODULE)) as { keyOfWallet: typeof keyOfWallet });
  });
  beforeEach(() => {
    [asked, signed] = [[], undefined];
    answers = {
      eth_requestAccounts: () => [wallet.address.toLowerCase()],
      eth_chainId: () => '0x13882',
      personal_sign: () => '0x12',
    };
  });

  const keyOf = async (page = PAGE, place = PLACE): Promise<string> => {
    const request = async ({ method, params: [data] }: { method: string; params: unknown[] }) => {
      asked.push(method);
      if (method === 'personal_sign') signed = toUtf8String(data as string);
      return answers[method]?.();
    };
    return logIn({ request }, place, page, {
      makeNonce: async () => ({ nonce: '93f0a1b2' }),
      logInWallet: async ({ message, signature }) => {
        expect([message, signature]).to.deep.equal([signed, '0x12']);
        return { key: 'tdk_1' } as never;
      },
    });
  };
  const refusal = async (page = PAGE, place = PLACE): Promise<string> =>
    keyOf(page, place).then(
      () => 'none',
      ({ code, message }: { code: string; message: string }) => `${code}: ${message}`,
    );

  it('signs the message that the service reads, for the account, the chain and the page', async () => {
    expect(await keyOf()).to.equal('tdk_1');
    const { address, chainId, nonce } = readLoginMessage(
      signed ?? '',
      PLACE.domain,
      Date.parse('2100-01-01'),
    );
    expect([address, chainId, nonce]).to.deep.equal([wallet.address, 80002, '93f0a1b2']);
  });

  it('signs nothing for a chain without a registry, without an account, and at another host', async () => {
    answers.eth_chainId = () => '0x5';
    expect(await refusal()).to.match(/on chain 5, .* Switch it to 1 or 80002/);
    for (const accounts of [[], undefined, ['So1anaAddress'], [null]]) {
      answers.eth_requestAccounts = () => accounts;
      expect(await refusal(), String(accounts)).to.match(/^WALLET_REFUSED: The wallet gave no account/);
    }
    expect(await refusal({ ...PAGE, host: 'other.example' })).to.match(
      /at carrier.example, and this is other/,
    );
    expect(asked).not.to.include('personal_sign');
    asked = [];
    expect(await refusal(PAGE, { ...PLACE, chainIds: [] })).to.match(/No registry is followed now/);
    expect(asked).to.deep.equal([]);
  });

  const REFUSALS: [unknown, RegExp][] = [
    [{ code: 4001, message: 'MetaMask Tx Signature: User denied' }, /rejected it in the wallet/],
    [{ code: '4001' }, /rejected it in the wallet/],
    [{ code: -32002 }, /asks you something already/],
    [{ code: 4100 }, /locked/],
    [{ code: 4901 }, /Choose another one/],
    [{ code: 4902 }, /Choose another one/],
    [new Error('Popup closed.'), /The wallet failed: Popup closed\. Unlock it/],
    ['Not now', /The wallet failed: Not now\. Unlock it/],
    [undefined, /it gave no reason/],
    [null, /it gave no reason/],
    [{ code: -32603, message: { deep: 1 } }, /it gave no reason/],
  ];
  it('says what to do about each refusal, also if it throws no error', async () => {
    for (const method of Object.keys(answers))
      for (const [thrown, words] of REFUSALS) {
        const before = answers[method] ?? (() => undefined);
        answers[method] = () => {
          throw thrown;
        };
        expect(await refusal(), `${method} ${JSON.stringify(thrown)}`).to.match(words);
        answers[method] = before;
      }
  });
});
