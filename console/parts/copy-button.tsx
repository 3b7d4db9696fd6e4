import { useEffect, useState } from 'preact/hooks';
import { useConsole } from '../frame/console-context';

const SHOWN_MS = 1500;

/** Browsers have a clipboard only on secure pages and on this machine. The types of the DOM do not say so. */
const clipboard = navigator.clipboard as Clipboard | undefined;

/** Whether values can be copied. */
export const canCopy = clipboard !== undefined;

/** Copies a value, where the browser can. */
export function CopyButton({ value, what }: { value: string; what: string }) {
  const { announce } = useConsole();
  const [isCopied, setCopied] = useState(false);
  useEffect(() => {
    if (!isCopied) return undefined;
    const timer = setTimeout(() => setCopied(false), SHOWN_MS);
    return () => clearTimeout(timer);
  }, [isCopied]);
  if (!clipboard) return null;
  const copy = async (): Promise<void> => {
    try {
      await clipboard.writeText(value);
      setCopied(true);
      announce(`Copied the ${what}.`);
    } catch {
      announce(`The browser did not allow to copy the ${what}.`);
    }
  };
  return (
    <button
      type="button"
      class="copy"
      aria-label={`Copy ${what}`}
      title={`Copy ${what}`}
      onClick={() => void copy()}
    >
      <svg viewBox="0 0 16 16" aria-hidden="true">
        {isCopied ? <path d="M3 8.5l3.2 3.2L13 5" /> : <path d="M5.5 5.5h7v8h-7zM3.5 10.5v-8h7" />}
      </svg>
    </button>
  );
}
