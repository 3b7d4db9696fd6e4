import { useState } from 'preact/hooks';
import { useConsole } from '../frame/console-context';
import { Dialog } from '../parts/dialog';
import { FailureNotice, Notice, useAction } from '../parts/feedback';
import { ShownText } from '../parts/values';
import type { Subscription } from '../requests/api';
import { RequestFailure } from '../requests/request';

interface Props {
  subscription: Subscription;
  onClose: () => void;
  onDeleted: () => void;
}

/** Asks before a subscription is deleted, and again if events would be lost. */
export function DeleteDialog({ subscription: { id, sink }, onClose, onDeleted }: Props) {
  const { api, announce } = useConsole();
  const { isRunning, failure, run } = useAction();
  const [undelivered, setUndelivered] = useState<string>();
  const remove = async (): Promise<void> => {
    try {
      await api.deleteSubscription(id, { force: undelivered !== undefined });
    } catch (error) {
      if (!(error instanceof RequestFailure) || error.code !== 'SUBSCRIPTION_UNDELIVERED') throw error;
      // Its second sentence is for those who send requests.
      setUndelivered(error.message.replace(/\. .*/s, '.'));
      return;
    }
    announce('The subscription is deleted.');
    onClose();
    onDeleted();
  };
  return (
    <Dialog title="Delete the subscription" onClose={onClose}>
      <p>
        <ShownText text={sink} longest={200} /> gets no further event. The page Deliveries no longer shows its
        deliveries.
      </p>
      {undelivered !== undefined && (
        <Notice tone="bad" word="Not delivered">
          <ShownText text={undelivered} />
        </Notice>
      )}
      <FailureNotice failure={failure} />
      <p class="buttons">
        <button type="button" class="danger" aria-disabled={isRunning} onClick={() => run(remove)}>
          {undelivered === undefined ? 'Delete' : 'Delete with its undelivered events'}
        </button>
        <button type="button" autofocus onClick={onClose}>
          Cancel
        </button>
      </p>
    </Dialog>
  );
}
