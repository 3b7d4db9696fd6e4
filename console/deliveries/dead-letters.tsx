import { useState } from 'preact/hooks';
import { useConsole, useMayChange } from '../frame/console-context';
import { FailureNotice, Notice } from '../parts/notice';
import { useAction } from '../parts/use-action';
import { redeliveryResult } from './redelivery-result';

/** Delivers all dead letters of a subscription again. */
export function DeadLetters({ subscription }: { subscription: string }) {
  const { api } = useConsole();
  const mayChange = useMayChange();
  const { isRunning, failure, run } = useAction();
  const [result, setResult] = useState<ReturnType<typeof redeliveryResult>>();
  if (!mayChange) return null;
  const redeliver = async (): Promise<void> => {
    const redelivery = await api.redeliver(subscription, { dead: true });
    setResult(redeliveryResult(redelivery, 'the subscription has no dead letters'));
  };
  return (
    <div class="stack">
      <p>
        <button type="button" aria-disabled={isRunning} onClick={() => run(redeliver)}>
          Deliver all dead letters of this subscription again
        </button>
      </p>
      {result && <Notice tone={result.tone}>{result.words}</Notice>}
      {failure && <FailureNotice failure={failure} />}
    </div>
  );
}
