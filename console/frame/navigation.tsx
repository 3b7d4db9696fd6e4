import { FailureNotice, useAction } from '../parts/feedback';
import { useConsole } from './console-context';
import { PAGES, hrefOf, type PageName } from './route';

interface Props {
  current: PageName;
  onLogOut: () => Promise<void>;
}

/** The pages, the network, and who is logged in. */
export function Navigation({ current, onLogOut }: Props) {
  const { facts, session, overview } = useConsole();
  const { isRunning, failure, run } = useAction();
  const shown = current === 'events' ? 'deliveries' : current;
  const problems = overview?.problems.length ?? 0;
  const isError = overview?.problems.some(({ severity }) => severity === 'error');
  return (
    <header class="navigation">
      <div class="brand">
        <b>Console</b>
        <span class="dim">{facts.network.name}</span>
      </div>
      <nav aria-label="Pages">
        <ul>
          {PAGES.map(({ name, title }) => (
            <li key={name}>
              <a href={hrefOf(name)} aria-current={name === shown ? 'page' : undefined}>
                {title}
                {name === 'overview' && problems > 0 && (
                  <span class={`count ${isError ? 'bad' : 'wait'}`}>
                    {problems}
                    <span class="unseen"> {problems === 1 ? 'problem' : 'problems'}</span>
                  </span>
                )}
              </a>
            </li>
          ))}
        </ul>
      </nav>
      <div class="who">
        <span class="dim">{session.role === 'operator' ? 'Operator' : 'Reader'}</span>
        <button type="button" aria-disabled={isRunning} onClick={() => run(onLogOut)}>
          Log out
        </button>
        <FailureNotice failure={failure} />
        <span class="dim version">Version {facts.version}</span>
      </div>
    </header>
  );
}
