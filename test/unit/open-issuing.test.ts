import { expect } from 'chai';
import { openIssuingWarning } from '../../service/config/warnings';

const URL = 'http://127.0.0.1:3000';

describe('the log line about issuing without an API key', () => {
  const levelOf = (host: string): string | undefined =>
    openIssuingWarning({ apiKey: undefined, host, tunnelAuthtoken: undefined }, URL)?.level;

  it('is a warning on a loopback address, and an error on any other', () => {
    for (const host of ['127.0.0.1', '127.1.2.3', '::1', 'localhost', 'LOCALHOST', '::ffff:127.0.0.1'])
      expect(levelOf(host), host).to.equal('warn');
    for (const host of ['0.0.0.0', '::', '10.0.0.1', 'fe80::1%eth0', 'trade.example.com', '128.0.0.1'])
      expect(levelOf(host), host).to.equal('error');
  });

  it('says what to change if other machines reach the service', () => {
    const said = openIssuingWarning({ apiKey: undefined, host: '0.0.0.0', tunnelAuthtoken: undefined }, URL);
    expect(said?.message).to.match(/API_KEY is not set, and HOST is 0\.0\.0\.0: .*Set API_KEY, or HOST=127/);
  });

  it('is an error with a tunnel, and absent if there is an API key', () => {
    const tunnel = { apiKey: undefined, host: '127.0.0.1', tunnelAuthtoken: 't' };
    const said = openIssuingWarning(tunnel, URL);
    expect(said?.level).to.equal('error');
    expect(said?.message).to.contain('anybody who reaches DOMAIN can issue');
    expect(openIssuingWarning({ ...tunnel, apiKey: 'k' }, URL)).to.equal(undefined);
  });
});
