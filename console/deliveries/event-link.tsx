import { Fragment } from 'preact';

/** The type of an event as a link to it. Long types break after an underscore. */
export function EventLink({ id, type }: { id: string; type: string }) {
  return (
    <a href={`#/events/${encodeURIComponent(id)}`}>
      {type.split(/(?<=_)/).map((part, index) => (
        <Fragment key={index}>
          {index > 0 && <wbr />}
          {part}
        </Fragment>
      ))}
    </a>
  );
}
