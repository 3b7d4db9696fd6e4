import { useRef, useState } from 'preact/hooks';
import { inPlace } from './in-place';

/** Rows as they are shown, and handlers of the element around them. */
export interface HeldRows<T> {
  rows: readonly T[];
  /** New rows that are held back. */
  waiting: number;
  holders: {
    onPointerEnter: () => void;
    onPointerLeave: () => void;
    onFocusIn: () => void;
    onFocusOut: (event: FocusEvent) => void;
  };
}

/**
 * Keeps rows at their places while somebody points at them or is among them with the keyboard: known rows
 * change, and new ones wait.
 */
export function useHeldRows<T>(latest: readonly T[], keyOf: (row: T) => string): HeldRows<T> {
  const [isPointed, setPointed] = useState(false);
  const [isFocused, setFocused] = useState(false);
  const shown = useRef(latest);
  shown.current = isPointed || isFocused ? inPlace(shown.current, latest, keyOf) : latest;
  const keys = new Set(shown.current.map(keyOf));
  return {
    rows: shown.current,
    waiting: latest.filter((row) => !keys.has(keyOf(row))).length,
    holders: {
      onPointerEnter: () => setPointed(true),
      onPointerLeave: () => setPointed(false),
      onFocusIn: () => setFocused(true),
      onFocusOut: ({ currentTarget, relatedTarget }) => {
        const isInside =
          currentTarget instanceof Node &&
          relatedTarget instanceof Node &&
          currentTarget.contains(relatedTarget);
        if (!isInside) setFocused(false);
      },
    },
  };
}
