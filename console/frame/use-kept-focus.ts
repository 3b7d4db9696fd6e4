import type { RefObject } from 'preact';
import { useEffect } from 'preact/hooks';

/**
 * Keeps the place of those who use the keyboard: when the element with the focus vanishes, the nearest group
 * around it that can have the focus gets it, or else `main`.
 */
export function useKeptFocus(root: RefObject<HTMLElement | null>, main: RefObject<HTMLElement | null>): void {
  useEffect(() => {
    const { current } = root;
    if (!current) return undefined;
    let last: EventTarget | null = null;
    const note = ({ target }: FocusEvent): void => {
      last = target;
    };
    // A click beside every control takes the focus away on purpose.
    const forget = ({ target }: PointerEvent): void => {
      const isInside = last instanceof Element && target instanceof Node && last.contains(target);
      if (!isInside) last = null;
    };
    const observer = new MutationObserver((changes) => {
      if (!(last instanceof Element) || last.isConnected || document.activeElement !== document.body) return;
      const vanished = last;
      const around = changes.find(({ removedNodes }) =>
        [...removedNodes].some((node) => node.contains(vanished)),
      )?.target;
      last = null;
      const group = around instanceof Element ? around.closest<HTMLElement>('[tabindex="-1"]') : null;
      (group?.isConnected ? group : main.current)?.focus({ preventScroll: true });
    });
    current.addEventListener('focusin', note);
    current.addEventListener('pointerdown', forget);
    observer.observe(current, { childList: true, subtree: true });
    return () => {
      current.removeEventListener('focusin', note);
      current.removeEventListener('pointerdown', forget);
      observer.disconnect();
    };
  }, [root, main]);
}
