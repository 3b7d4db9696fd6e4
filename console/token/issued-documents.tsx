import { useConsole } from '../frame/console-context';
import { hrefOf } from '../frame/route';
import { Hex } from '../parts/hex';
import { WhenLoaded } from '../parts/loading';
import { Party } from '../parts/party';
import { ShownText } from '../parts/shown-text';
import { Table, type Column } from '../parts/table';
import { When } from '../parts/when';
import type { Issuance } from '../requests/api';
import { useLoaded } from '../requests/use-loaded';

const MOST = 20;

const COLUMNS: readonly Column<Issuance>[] = [
  {
    head: 'Number',
    cell: ({ blNumber }) =>
      blNumber === undefined ? <span class="dim">—</span> : <ShownText text={blNumber} />,
  },
  {
    head: 'Token',
    cell: ({ tokenId }) => <Hex value={tokenId} what="token id" href={hrefOf('token', { id: tokenId })} />,
  },
  { head: 'Issued', cell: ({ createdAt }) => <When at={Date.parse(createdAt)} isPast /> },
  { head: 'Mint', cell: ({ state }) => state },
  { head: 'First beneficiary', cell: ({ owner }) => <Party address={owner} /> },
  { head: 'First holder', cell: ({ holder }) => <Party address={holder} /> },
];

/** The newest documents of this service, for those who do not know a token id. */
export function IssuedDocuments() {
  const { api } = useConsole();
  const loaded = useLoaded('documents', (signal) => api.documents(MOST, signal));
  return (
    <section class="stack" aria-labelledby="issued-documents">
      <h2 id="issued-documents">Documents of this service</h2>
      <WhenLoaded loaded={loaded}>
        {(documents) =>
          documents.length === 0 ? (
            <p class="note">None was issued yet.</p>
          ) : (
            <Table
              caption="Documents, the newest first"
              columns={COLUMNS}
              rows={documents}
              keyOf={({ tokenId }) => tokenId}
            />
          )
        }
      </WhenLoaded>
    </section>
  );
}
