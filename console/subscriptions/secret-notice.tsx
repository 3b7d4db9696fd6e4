import { CopyButton } from '../parts/values';
import { Notice } from '../parts/feedback';
import type { Subscription } from '../requests/api';

interface Props {
  subscription: Subscription;
  onClose: () => void;
}

/** A new subscription, and its secret, which no later answer shows. */
export function SecretNotice({ subscription: { id, config }, onClose }: Props) {
  return (
    <Notice tone="good" word="Created" spoken="The subscription is created.">
      <p>
        Subscription <span class="wrap">{id}</span>
      </p>
      {config.secret !== undefined && (
        <>
          <p>
            <b>The secret of Standard Webhooks is shown once.</b> Copy it to the sink now.
          </p>
          <p class="hex">
            <code class="wrap">{config.secret}</code>
            <CopyButton value={config.secret} what="secret" />
          </p>
        </>
      )}
      <button type="button" onClick={onClose}>
        {config.secret === undefined ? 'Close' : 'I have copied it'}
      </button>
    </Notice>
  );
}
