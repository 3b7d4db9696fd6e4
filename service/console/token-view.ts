import { getAddress } from 'ethers';
import type { Network } from '../chain/networks';
import { aboutOf } from '../events/cloud-event';
import { decryptRemark } from '../issuance/remarks';
import type { DeliveredEvent } from '../outbox/deliveries';
import { tokenIdHexOf } from '../registry/token-id-forms';
import { possibleOperations } from '../token/possible-operations';
import type { TokenHistory } from '../token/read-token-history';
import { eventView } from './delivery-views';
import type { AskedToken } from './token-question';
import type { IssuingProgress, OperationView, TokenView } from './views';

/** Facts that are known about a token. */
export interface KnownToken {
  asked: AskedToken;
  network: Network;
  history: TokenHistory;
  /** In the order of the log. */
  events: readonly DeliveredEvent[];
  issuing: IssuingProgress | undefined;
}

/** The token as the page shows it. */
export function tokenView({ asked, network, history, events, issuing }: KnownToken): TokenView {
  const { location, credentialId } = asked;
  const { state, isWhole } = history;
  const escrow = state.state === 'not minted' ? undefined : state;
  return {
    tokenId: tokenIdHexOf(location.tokenId),
    network: network.name,
    chainId: location.chainId,
    registry: getAddress(location.registry),
    explorerUrl: network.explorerUrl ?? null,
    state: state.state,
    isPaused: state.isPaused,
    block: state.block,
    titleEscrow: escrow?.titleEscrow ?? null,
    beneficiary: escrow?.beneficiary ?? null,
    holder: escrow?.holder ?? null,
    nominee: escrow?.nominee ?? null,
    previousBeneficiary: escrow?.previousBeneficiary ?? null,
    previousHolder: escrow?.previousHolder ?? null,
    operations: operationViews(history, events, credentialId),
    isWhole,
    next: possibleOperations(state),
    credentialId: credentialId ?? null,
    issuing: issuing ?? null,
  };
}

/** The events of a transaction are beside the first of its operations. It nearly always has only one. */
function operationViews(
  { endorsements }: TokenHistory,
  events: readonly DeliveredEvent[],
  credentialId: string | undefined,
): OperationView[] {
  return endorsements.map(({ timestamp, remark, ...endorsement }, index) => {
    const { transactionHash } = endorsement;
    const isFirst = endorsements[index - 1]?.transactionHash !== transactionHash;
    return {
      ...endorsement,
      at: timestamp * 1_000,
      remark: remarkView(remark, credentialId),
      events: isFirst
        ? events.filter(({ body }) => aboutOf(body).transactionHash === transactionHash).map(eventView)
        : [],
    };
  });
}

function remarkView(hex: string, credentialId: string | undefined): OperationView['remark'] {
  const decrypted = decryptRemark(hex, credentialId);
  if (decrypted.kind === 'none') return null;
  const text = 'text' in decrypted ? decrypted.text : null;
  return { hex, text, isEncrypted: decrypted.kind !== 'plain text' };
}
