import { createContext } from 'preact';
import { useContext } from 'preact/hooks';
import { useConsole } from '../frame/console-context';
import { shortened } from '../text/shorten';
import { accountName } from './account-name';
import { Hex } from './hex';

/** The short forms of a page's addresses, where the usual ones would look alike. */
export const ShortForms = createContext<ReadonlyMap<string, string>>(new Map());

interface Props {
  address: string | null | undefined;
  /** Within a sentence: without a button to copy it. */
  isPlain?: boolean;
}

/** An address, with its name if it is an account of the local node. */
export function Party({ address, isPlain = false }: Props) {
  const names = useContext(ShortForms);
  const { accounts } = useConsole().facts;
  if (!address) return <span class="dim">nobody</span>;
  const name = accountName(address, accounts);
  const short = names.get(address) ?? shortened(address);
  return (
    <span class="party">
      {name !== undefined && <b>{name}</b>}
      {isPlain ? (
        <code title={address}>{short}</code>
      ) : (
        <Hex value={address} what={name === undefined ? 'address' : `address of ${name}`} short={short} />
      )}
    </span>
  );
}
