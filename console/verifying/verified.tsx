import type { ComponentChildren } from 'preact';
import type { AnswerView, VerifyView } from '../../service/console/views';
import { hrefOf } from '../frame/route';
import { FactsList } from '../parts/facts-list';
import { Hex } from '../parts/hex';
import { RegistryName } from '../parts/registry-name';
import { ShownText } from '../parts/shown-text';
import { StateMark, type Shape, type Tone } from '../parts/state-mark';

const MARKS: Record<AnswerView['outcome'], { tone: Tone; shape: Shape }> = {
  valid: { tone: 'good', shape: 'check' },
  invalid: { tone: 'bad', shape: 'cross' },
  'could not tell': { tone: 'wait', shape: 'question' },
};

/** The three answers about a credential, with every check. */
export function Verified({ view }: { view: VerifyView }) {
  const { documentIntegrity, issuerIdentity, documentStatus, lookedUp, shown } = view;
  const { tokenId, registry } = documentStatus;
  return (
    <>
      <p class="verdict">
        <StateMark word={view.outcome} {...MARKS[view.outcome]} />
      </p>
      <AnswerCard title="Document integrity" question="Is it as it was signed?" answer={documentIntegrity} />
      <AnswerCard
        title="Issuer identity"
        question="Does the named issuer publish the key?"
        answer={issuerIdentity}
      >
        <FactsList
          rows={[
            [
              'Issuer',
              issuerIdentity.issuer === null ? undefined : <ShownText text={issuerIdentity.issuer} />,
            ],
          ]}
        />
      </AnswerCard>
      <AnswerCard title="Document status" question="Is its token in circulation?" answer={documentStatus}>
        <FactsList
          rows={[
            [
              'Token',
              tokenId === null ? undefined : (
                <Hex
                  value={tokenId}
                  what="token id"
                  href={hrefOf('token', { id: tokenId, registry: registry ?? undefined })}
                />
              ),
            ],
            ['Registry', registry === null ? undefined : <RegistryName registry={registry} />],
          ]}
        />
      </AnswerCard>
      <section class="card" aria-labelledby="looked-up">
        <h3 id="looked-up">Looked up outside</h3>
        {lookedUp.length === 0 ? (
          <p class="dim">Nothing.</p>
        ) : (
          <ul>
            {lookedUp.map((place) => (
              <li key={place} class="wrap">
                <ShownText text={place} />
              </li>
            ))}
          </ul>
        )}
      </section>
      {shown && (
        <section class="card" aria-labelledby="shown">
          <h3 id="shown">Content of the credential</h3>
          <ShownText
            block="Content of the credential"
            text={JSON.stringify(shown, null, 2)}
            longest={10_000}
          />
        </section>
      )}
    </>
  );
}

interface AnswerProps {
  title: string;
  question: string;
  answer: AnswerView;
  children?: ComponentChildren;
}

function AnswerCard({ title, question, answer: { outcome, checks }, children }: AnswerProps) {
  return (
    <section class="card" aria-label={title}>
      <header>
        <h3>
          {title} <span class="dim">{question}</span>
        </h3>
        <StateMark word={outcome} {...MARKS[outcome]} />
      </header>
      {children}
      <ul class="plain checks">
        {checks.map(({ check, outcome: own, found }, index) => (
          <li key={index}>
            <StateMark word={own} {...MARKS[own]} />
            <span>
              <b>
                <ShownText text={check} />
              </b>{' '}
              <ShownText text={found} />
            </span>
          </li>
        ))}
      </ul>
    </section>
  );
}
