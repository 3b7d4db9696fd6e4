/** A subscription. Its id is a UUID: the beginning is a time, and only the end tells it from others. */
export function SubscriptionName({ id }: { id: string }) {
  return (
    <span class="nowrap" title={id}>
      {id.length > 12 ? `…${id.slice(-8)}` : id}
    </span>
  );
}
