import type { IncomingMessage, RequestListener } from 'node:http';
import { text } from 'node:stream/consumers';
import type { JsonRpcProvider } from 'ethers';
import { compile, version } from 'solc';

/** A source that was submitted to the explorer for a contract. */
export interface Submission {
  address: string;
  /** "file:contract". */
  contract: string;
  compiler: string;
  /** Arguments of the constructor, in hexadecimal without 0x. */
  args: string;
  input: CompilerInput;
}

/** An explorer that verifies contracts like Etherscan. */
export interface FakeExplorer {
  submissions: Submission[];
  answer: RequestListener;
  /** Answers with status 500 from now on. */
  fail(): void;
}

/** Standard JSON input of the compiler. */
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
 * Answers like Etherscan's API v2, with this key and about this chain only. Like Etherscan it compiles a
 * submission, and accepts it as the source of a contract if the result is the code that made the contract.
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
          // The spelling is Etherscan's.
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
  // No transaction has the creation code of a contract that another contract made: compare its code.
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
