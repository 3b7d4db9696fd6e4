import { dataLength, type ErrorDescription } from 'ethers';
import { escrowInterface, registryInterface } from '../../service/registry/registry-contracts';
import type { TokenState } from '../../service/registry/read-token-state';
import { roleNameOf, ROLES } from './roles';

/** Longest remark in bytes (RemarkLengthLimit of the contracts). */
const LONGEST_REMARK = 120;
/** Length of an error selector. A revert without a reason has no data. */
const SELECTOR_BYTES = 4;

/**
 * The known facts about a call that the registry refuses. `flags`: the options for a command on that
 * registry; `adminOf`: hash of the role whose members may grant the missing role.
 */
interface RefusedCall {
  flags: string;
  remarkBytes: number;
  tokenState?: TokenState['state'] | undefined;
  adminOf?: string | undefined;
}

/**
 * The error with which the registry or a title escrow reverted. Undefined for other errors and for no reason.
 */
export function parseRevert(data: string): ErrorDescription | undefined {
  if (dataLength(data) < SELECTOR_BYTES) return undefined;
  return registryInterface.parseError(data) ?? escrowInterface.parseError(data) ?? undefined;
}

/** Explains each error that a registry admin can meet, and its remedy (docs/states.md). */
export function explainRefusal(error: ErrorDescription | undefined, call: RefusedCall): string {
  switch (error?.name) {
    case 'AccessControlUnauthorizedAccount':
      return unauthorized(error, call);
    case 'EnforcedPause':
      return `The registry is paused: its admin must unpause it first (\`npx tdoc unpause${call.flags}\`).`;
    case 'ExpectedPause':
      return 'The registry is not paused.';
    case 'RemarkLengthExceeded':
      return `The remark has ${call.remarkBytes} bytes in UTF-8: ${LONGEST_REMARK} are allowed. Shorten it.`;
    case 'TokenNotReturnedToIssuer':
      return notReturned(call);
    case 'InactiveTitleEscrow':
      return SHREDDED;
    case undefined:
      return 'The contract gives no reason: check that this is a v5 token registry.';
    default:
      return 'docs/states.md lists the operations that each state allows.';
  }
}

const SHREDDED = 'The token was shredded: no operation is possible any more.';

function notReturned({ tokenState, flags }: RefusedCall): string {
  if (tokenState === 'shredded') return SHREDDED;
  return (
    'The token is in its title escrow: the account that is both beneficiary and holder must return it ' +
    `to the issuer first (\`npx tdoc token ID${flags}\` shows which account that is).`
  );
}

function unauthorized(error: ErrorDescription, { adminOf, flags }: RefusedCall): string {
  const account = error.args.getValue('account') as string;
  const role = roleNameOf(error.args.getValue('neededRole') as string);
  const grantor = adminOf === undefined ? 'admin' : roleNameOf(adminOf);
  const command = `\`npx tdoc role grant --role ${role} --account ${account}${flags}\``;
  return (
    `The wallet ${account} has no ${role} role in this registry. Accounts with the ${grantor} role can ` +
    `grant it${ROLES.has(role) ? ` (${command})` : ''}; \`npx tdoc role list${flags}\` lists them.`
  );
}
