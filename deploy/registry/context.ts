import type { HardhatRuntimeEnvironment } from 'hardhat/types';
import type { Tenant } from '../../service/config/tenant';
import type { ChainIdentity, RpcRequest } from './chain-identity';
import type { Target } from './target';

/** The data that every step of a deployment needs. */
export interface DeployContext {
  readonly hre: HardhatRuntimeEnvironment;
  readonly request: RpcRequest;
  readonly target: Target;
  readonly chain: ChainIdentity;
  readonly tenant: Tenant;
  /** The account that deploys and becomes admin and minter. */
  readonly account: string;
  /** Folder of all deployment journals. */
  readonly journalsRoot: string;
  /** Masks every secret in a text. */
  readonly mask: (text: string) => string;
  /** Prints a line for the user. */
  readonly say: (line: string) => void;
}
