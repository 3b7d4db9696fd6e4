import type { IncomingMessage, RequestListener } from 'node:http';
import { text } from 'node:stream/consumers';
import type { JsonRpcProvider } from 'ethers';
import { compile, version } from 'solc';

/** What an explorer was sent to show as the source of a contract. */
export interface Submission {
  address: string;
  /** "file:contract". */
  contract: string;
  compiler: string;
  /** Of the constructor, in hexadecimal without 0x. */
  args: string;
  input: CompilerInput;
}

/** An explorer of Etherscan's make, as far as it verifies contracts. */
export interface FakeExplorer {
  submissions: Submission[];
  answer: RequestListener;
  /** Answers with status 500 from now on. */
  fail(): void;
}

/** Standard JSON, as the compiler takes it. */
interface CompilerInput {
  settings: { optimizer: unknown; evmVersion: string };
  sources: Record<string, unknown>;
}

interface CompilerOutput {
  contracts: Record<
    string,
    Record<string, { evm: Record<'bytecode' | 'deployedBytecode', { object: string }> }>
  >;
}

const OK = { status: '1', message: 'OK' };
const REFUSED = { status: '0', message: 'NOTOK' };

/**
 * Answers as Etherscan's API v2 does, to this key and about this chain alone. Like Etherscan it compiles what
 * it is sent, and takes it for the source of a contract when that gives the very code that made the contract.
 */
export function createFakeExplorer(chain: JsonRpcProvider, chainId: number, key: string): FakeExplorer {
  const submissions: Submission[] = [];
  let status = 200;
  const answerTo = async (query: URLSearchParams, form: URLSearchParams): Promise<object> => {
    const told = (name: string): string => form.get(name) ?? query.get(name) ?? '';
    if (told('apikey') !== key) return { ...REFUSED, result: 'Invalid API Key' };
    if (query.get('chainid') !== String(chainId))
      return { ...REFUSED, result: 'Missing or unsupported chainid' };
    switch (told('action')) {
      case 'getsourcecode':
        return { ...OK, result: [{ SourceCode: '' }] };
      case 'verifysourcecode':
        submissions.push({
          address: told('contractaddress'),
          contract: told('contractname'),
          compiler: told('compilerversion'),
          // It is Etherscan that spells it so.
          args: told('constructorArguements'),
          input: JSON.parse(told('sourceCode')) as CompilerInput,
        });
        return { ...OK, result: String(submissions.length - 1) };
      case 'checkverifystatus': {
        const submission = submissions[Number(told('guid'))];
        const isSource = submission !== undefined && (await isSourceOf(chain, submission));
        return isSource
          ? { ...OK, result: 'Pass - Verified' }
          : { ...REFUSED, result: 'Fail - Unable to verify' };
      }
      default:
        return { ...REFUSED, result: 'Error! Missing Or invalid Action name' };
    }
  };
  return {
    submissions,
    answer: (request, response) => {
      void formOf(request)
        .then((form) => answerTo(new URL(request.url ?? '', 'https://explorer').searchParams, form))
        .then((body) => response.writeHead(status).end(JSON.stringify(body)));
    },
    fail: () => void (status = 500),
  };
}

async function formOf(request: IncomingMessage): Promise<URLSearchParams> {
  return new URLSearchParams(await text(request));
}

async function isSourceOf(
  chain: JsonRpcProvider,
  { address, contract, compiler, args, input }: Submission,
): Promise<boolean> {
  if (compiler !== `v${version().replace('.Emscripten.clang', '')}`) return false;
  const [file = '', name = ''] = contract.split(':');
  const outputSelection = { [file]: { [name]: ['evm.bytecode.object', 'evm.deployedBytecode.object'] } };
  const settings = { ...input.settings, outputSelection };
  const output = JSON.parse(compile(JSON.stringify({ ...input, settings }))) as CompilerOutput;
  const compiled = output.contracts[file]?.[name]?.evm;
  const creation = await creationOf(chain, address);
  // What another contract has made was in no transaction: its code is compared.
  if (creation === undefined)
    return `0x${compiled?.deployedBytecode.object}` === (await chain.getCode(address));
  return `0x${compiled?.bytecode.object}${args}` === creation;
}

/** The data of the transaction that made a contract, unless another contract did. */
async function creationOf(chain: JsonRpcProvider, address: string): Promise<string | undefined> {
  for (let number = await chain.getBlockNumber(); number > 0; number--) {
    const block = await chain.getBlock(number, true);
    for (const { hash, data } of block?.prefetchedTransactions ?? []) {
      const receipt = await chain.getTransactionReceipt(hash);
      if (receipt?.contractAddress?.toLowerCase() === address.toLowerCase()) return data;
    }
  }
  return undefined;
}
