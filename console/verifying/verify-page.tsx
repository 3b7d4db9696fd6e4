import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import type { VerifiedView } from '../../service/answers/views';
import type { Answer } from '../../service/verification/answer';
import { useConsole } from '../frame/console-context';
import { FailureNotice, useAction } from '../parts/feedback';
import { FileDrop, jsonObjectText, LinesField, readJsonFile } from '../parts/fields';
import { FactsList, RegistryName, ShownText, StateMark, TokenLink, type Mark } from '../parts/values';
import { escapedText } from '../text/visible-characters';

export function VerifyPage() {
  const { api, announce } = useConsole();
  const [pasted, setPasted] = useState('');
  const [found, setFound] = useState<{ name: string; view: VerifiedView }>();
  const { isRunning, failure, run } = useAction();
  const verify = (name: string, read: () => Promise<string> | string): void => {
    setFound(undefined);
    run(async () => {
      const view = await api.verify(await read());
      setFound({ name, view });
      announce(`${escapedText(name)}: ${view.outcome}.`);
    });
  };
  return (
    <>
      <h1>Verify</h1>
      <p class="note">
        The file goes to this service, which neither stores nor logs it. The result names every host that the
        service asks.
      </p>
      <div class="card ask">
        <FileDrop
          label="Credential file"
          hint="Choose it, or drop it here."
          accept=".json,.tt,application/json"
          isDisabled={isRunning}
          onFiles={([file]) => file && verify(file.name, () => readJsonFile(file))}
        />
        <form
          onSubmit={(event) => {
            event.preventDefault();
            verify('The text', () => jsonObjectText(pasted, 'The text'));
          }}
        >
          <LinesField label="Or paste the credential" rows={3} value={pasted} onChange={setPasted} />
          <button type="submit" class="main" disabled={pasted.trim() === ''} aria-disabled={isRunning}>
            Verify
          </button>
        </form>
      </div>
      <div aria-live="polite">{isRunning && <p class="dim">Verifying …</p>}</div>
      <FailureNotice failure={failure} />
      {found && (
        <>
          <h2>
            Result for <ShownText text={found.name} longest={80} />
          </h2>
          <Verified view={found.view} />
        </>
      )}
    </>
  );
}

const MARKS: Record<Answer['outcome'], Mark> = {
  valid: { tone: 'good', shape: 'check' },
  invalid: { tone: 'bad', shape: 'cross' },
  'could not tell': { tone: 'wait', shape: 'question' },
};

/** The three answers about a credential, with every check. */
function Verified({ view }: { view: VerifiedView }) {
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
          rows={[['Issuer', issuerIdentity.issuer !== null && <ShownText text={issuerIdentity.issuer} />]]}
        />
      </AnswerCard>
      <AnswerCard title="Document status" question="Is its token in circulation?" answer={documentStatus}>
        <FactsList
          rows={[
            ['Token', tokenId !== null && <TokenLink id={tokenId} registry={registry ?? undefined} />],
            ['Registry', registry !== null && <RegistryName registry={registry} />],
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
  answer: Answer;
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
