import { type JsonRpcProvider } from 'ethers';
import { TitleEscrow__factory, TradeTrustTokenStandard__factory, type TitleEscrow } from '../typechain-types';

/** The local chain's accounts that take part, by their position in the node's list. */
export const OWNER = 1;
const SECOND_HOLDER = 2;
const NOMINEE = 3;

/** A step of the walk and the events that it emits, in order. */
export interface Step {
  title: string;
  run(): Promise<unknown>;
  events: readonly string[];
}

/** Events of a mint, in order. */
export const MINT_EVENTS = [
  'escrow_created',
  'minted',
  'beneficiary_transfer',
  'holder_transfer',
  'token_received',
] as const;

/** The steps that a new token of account 1 goes through. Each is sent by an account that may do it. */
export async function stepsFor(
  node: JsonRpcProvider,
  registryAddress: string,
  tokenId: bigint,
): Promise<Step[]> {
  const escrow = await TradeTrustTokenStandard__factory.connect(registryAddress, node).ownerOf(tokenId);
  const as = async (index: number): Promise<TitleEscrow> =>
    TitleEscrow__factory.connect(escrow, await node.getSigner(index));
  const address = async (index: number): Promise<string> => (await node.getSigner(index)).address;
  return [
    {
      title: 'the holder hands the document to account 2',
      run: async () => (await (await as(OWNER)).transferHolder(await address(SECOND_HOLDER), '0x')).wait(),
      events: ['holder_transfer'],
    },
    {
      title: 'the beneficiary nominates account 3',
      run: async () => (await (await as(OWNER)).nominate(await address(NOMINEE), '0x')).wait(),
      events: ['nomination'],
    },
    {
      title: 'the holder makes the nominee the beneficiary',
      run: async () =>
        (await (await as(SECOND_HOLDER)).transferBeneficiary(await address(NOMINEE), '0x')).wait(),
      events: ['beneficiary_transfer', 'nomination'],
    },
  ];
}
