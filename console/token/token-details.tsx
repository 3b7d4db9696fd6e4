import type { ComponentChildren } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { type Bar, type Stage, timelineOf, waterfallOf } from '../../client/timeline';
import { accountNames } from '../../cli/terminal/printable';
import type { KnownToken } from '../../service/answers/views';
import type { EscrowState } from '../../service/registry/read-token-state';
import { shortType, SubscriptionName } from '../deliveries/delivery-parts';
import { useConsole } from '../frame/console-context';
import { DownloadButton, ProgressLine, saveJson } from '../issuing/issued-document';
import { FailureNotice, useAction } from '../parts/feedback';
import { Table, type Column } from '../parts/table';
import { FactsList, Hex, Party, ShortForms, ShownText } from '../parts/values';
import { millisecondsOf } from '../text/words';
import { EndorsementChain } from './endorsement-chain';
import { explorerLink, sentenceOf } from './token-words';

/** A token as it is now, and how it came there. */
export function TokenDetails({ token, hasCredential }: { token: KnownToken; hasCredential: boolean }) {
  const { announce } = useConsole();
  const { registry, state, explorerUrl, issuing } = token;
  useEffect(() => announce(`Token ${state.state}.`), [token.tokenId]);
  const party = (address: string | undefined): ComponentChildren =>
    address !== undefined && <Party address={address} />;
  const escrow = escrowOf(token);
  return (
    <ShortForms.Provider value={accountNames(addressesOf(token))}>
      <section class="card" aria-labelledby="now">
        <h2 id="now">Now</h2>
        <StateDiagram state={state.state} />
        {state.isPaused && (
          <p class="note">The registry is paused: nothing is possible until its admin unpauses it.</p>
        )}
        <div class="halves">
          <FactsList
            rows={[
              ['Beneficiary', party(escrow.beneficiary)],
              ['Holder', party(escrow.holder)],
              ['Nominee', party(escrow.nominee)],
              ['Previous beneficiary', party(escrow.previousBeneficiary)],
              ['Previous holder', party(escrow.previousHolder)],
            ]}
          />
          <FactsList
            rows={[
              ['Bill of Lading', issuing?.blNumber != null && <ShownText text={issuing.blNumber} />],
              ['Token id', <Hex value={token.tokenIdHex} what="token id" />],
              [
                'Registry',
                <Hex
                  value={registry}
                  what="address of the registry"
                  href={explorerLink(explorerUrl, 'address', registry)}
                />,
              ],
              ['Network', `${token.network}, chain ${token.chainId}`],
              [
                'Title escrow',
                escrow.titleEscrow !== undefined && (
                  <Hex value={escrow.titleEscrow} what="address of the title escrow" />
                ),
              ],
              ['Read at block', state.block.toLocaleString('en')],
            ]}
          />
        </div>
        {issuing && issuing.state !== 'final' && <ProgressLine progress={issuing} />}
        <p class="buttons">
          {(issuing?.state === 'mined' || issuing?.state === 'final') && (
            <DownloadButton tokenId={token.tokenIdHex} />
          )}
          {state.state !== 'not minted' && <EvidenceButton token={token} />}
        </p>
      </section>
      <NextOperations token={token} />
      <EndorsementChain token={token} hasCredential={hasCredential} />
      <Waterfall token={token} />
    </ShortForms.Provider>
  );
}

/** Saves the proofs of what happened to a token, which `tdoc check-evidence` checks. */
function EvidenceButton({ token: { tokenIdHex, chainId, registry } }: { token: KnownToken }) {
  const { api } = useConsole();
  const { run, isRunning, failure } = useAction();
  const save = async (): Promise<void> =>
    saveJson(
      `evidence-${tokenIdHex.slice(0, 12)}.json`,
      await api.evidence(tokenIdHex, `${chainId}:${registry}`),
    );
  return (
    <>
      <button type="button" aria-disabled={isRunning} onClick={() => run(save)}>
        Download the evidence
      </button>
      <FailureNotice failure={failure} />
    </>
  );
}

/** The parties of a token that was minted. */
function escrowOf({ state }: KnownToken): Partial<EscrowState> {
  return state.state === 'not minted' ? {} : state;
}

/** Every address that the page shows, so that no two look alike. */
function addressesOf(token: KnownToken): string[] {
  const { beneficiary, holder, nominee, previousBeneficiary, previousHolder } = escrowOf(token);
  const changes = token.endorsements.flatMap(({ before, after, sender }) => [
    ...Object.values(before),
    ...Object.values(after),
    sender,
  ]);
  const all = [beneficiary, holder, nominee, previousBeneficiary, previousHolder, ...changes];
  return all.filter((address): address is string => typeof address === 'string');
}

type State = KnownToken['state']['state'];

const STATES: readonly { state: State; arrow: string; words: string }[] = [
  { state: 'not minted', arrow: '', words: '' },
  { state: 'in escrow', arrow: '→', words: 'mint' },
  { state: 'returned to issuer', arrow: '⇄', words: 'return, restore' },
  { state: 'shredded', arrow: '→', words: 'shred' },
];

/** The states of a token, with the one that it is in. */
function StateDiagram({ state }: { state: State }) {
  return (
    <ol class="diagram" aria-label="States of a token">
      {STATES.map((step) => (
        <li key={step.state}>
          {step.arrow !== '' && (
            <span class="arrow">
              <span aria-hidden="true">{step.arrow}</span>
              <span>{step.words}</span>
            </span>
          )}
          <span class="box" aria-current={step.state === state ? 'true' : undefined}>
            {step.state}
          </span>
        </li>
      ))}
    </ol>
  );
}

/** A stage with its bar. `after`: milliseconds after the first stage began. */
type StageRow = Stage & Bar & { after: number };

const STAGE_COLUMNS: readonly Column<StageRow>[] = [
  {
    head: 'Stage',
    cell: ({ stage, event, subscription }) =>
      event === null || subscription === null ? (
        stage
      ) : (
        <span>
          {stage} of {shortType(event)} to <SubscriptionName id={subscription} />
        </span>
      ),
  },
  {
    head: 'Begins',
    cell: ({ from, to, after }) => (
      <div class="begin">
        <svg class="bar" viewBox="0 0 100 1" preserveAspectRatio="none" aria-hidden="true">
          <rect x={Math.min(from * 100, 99)} width={Math.max((to - from) * 100, 1)} height="1" />
        </svg>
        <span class="dim">at {millisecondsOf(after)}</span>
      </div>
    ),
  },
  { head: 'Duration', isNumber: true, cell: (stage) => tookOf(stage) },
];

const ERROR_COLUMN: Column<StageRow> = {
  head: 'Error',
  cell: ({ error }) => error !== null && <ShownText text={error} />,
};

/** Stages that are shown at first: a receiver that is away for days gets very many attempts. */
const MOST_STAGES = 40;

function tookOf({ milliseconds, error }: Stage): string {
  if (milliseconds === null) return error === null ? 'under way' : 'failed';
  return milliseconds === 0 ? 'less than 1 ms' : millisecondsOf(milliseconds);
}

/** How long each stage of the document took, from its request to its subscribers. */
function Waterfall({ token }: { token: KnownToken }) {
  const [isWhole, setWhole] = useState(false);
  const stages = timelineOf(token);
  if (stages.length === 0) return null;
  const bars = waterfallOf(stages);
  const rows = stages.map((stage, index) => ({
    ...stage,
    ...(bars[index] ?? { from: 0, to: 1 }),
    after: stage.startedAt - (stages[0]?.startedAt ?? 0),
  }));
  const hasFailed = stages.some(({ error }) => error !== null);
  return (
    <section class="card" aria-labelledby="timeline">
      <h2 id="timeline">From the request to the subscribers</h2>
      {token.issuing?.traceId != null && (
        <p class="dim">
          Trace <Hex value={token.issuing.traceId} what="id of the trace" />
        </p>
      )}
      <Table
        caption="Stages of the document"
        columns={hasFailed ? [...STAGE_COLUMNS, ERROR_COLUMN] : STAGE_COLUMNS}
        rows={isWhole ? rows : rows.slice(0, MOST_STAGES)}
        keyOf={(row) => `${rows.indexOf(row)}`}
        empty="None has begun."
      />
      {rows.length > MOST_STAGES && (
        <button type="button" aria-expanded={isWhole} onClick={() => setWhole(!isWhole)}>
          {isWhole ? 'Show less' : `Show all ${rows.length.toLocaleString('en')} stages`}
        </button>
      )}
    </section>
  );
}

/** The operations that are possible next, each with the account that may send it. */
function NextOperations({ token }: { token: KnownToken }) {
  const { next } = token;
  const { beneficiary, holder } = escrowOf(token);
  const rolesOf = (address: string): string => {
    const roles = Object.entries({ beneficiary, holder }).flatMap(([role, one]) =>
      one === address ? role : [],
    );
    return roles.length === 0 ? '' : ` (${roles.join(' and ')})`;
  };
  return (
    <section class="card" aria-labelledby="next">
      <h2 id="next">Possible next operations</h2>
      {next.length === 0 ? (
        <p>No operation is possible any more.</p>
      ) : (
        <ul class="next">
          {next.map((possible) => (
            <li key={possible.operation + possible.by}>
              {sentenceOf(possible).map((part, index) =>
                'words' in part ? (
                  part.words
                ) : (
                  <span key={index}>
                    <Party address={part.address} isPlain />
                    {index === 0 && rolesOf(part.address)}
                  </span>
                ),
              )}
            </li>
          ))}
        </ul>
      )}
    </section>
  );
}
