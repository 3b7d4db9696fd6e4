import { useId, useState } from 'preact/hooks';

interface Props {
  label: string;
  hint: string;
  accept?: string;
  isMultiple?: boolean;
  isDisabled?: boolean;
  onFiles: (files: File[]) => void;
}

/** A file picker that files can be dropped on. */
export function FileDrop({ label, hint, accept, isMultiple = false, isDisabled = false, onFiles }: Props) {
  const id = useId();
  const [isOver, setOver] = useState(false);
  const take = (files: FileList | null | undefined): void => {
    setOver(false);
    if (files && files.length > 0 && !isDisabled) onFiles([...files].slice(0, isMultiple ? undefined : 1));
  };
  return (
    <div
      class={`drop${isOver ? ' over' : ''}`}
      onDragOver={(event) => {
        event.preventDefault();
        setOver(true);
      }}
      onDragLeave={() => setOver(false)}
      onDrop={(event) => {
        event.preventDefault();
        take(event.dataTransfer?.files);
      }}
    >
      <label for={id}>{label}</label>
      <input
        id={id}
        type="file"
        accept={accept}
        multiple={isMultiple}
        aria-disabled={isDisabled}
        aria-describedby={`${id}-hint`}
        onClick={(event) => {
          if (isDisabled) return event.preventDefault();
          // So that the same file can be chosen again.
          event.currentTarget.value = '';
        }}
        onChange={({ currentTarget }) => take(currentTarget.files)}
      />
      <p id={`${id}-hint`} class="hint">
        {hint}
      </p>
    </div>
  );
}
