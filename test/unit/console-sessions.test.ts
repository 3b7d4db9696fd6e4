import { expect } from 'chai';
import { createSessions } from '../../service/console/sessions';

const MOST_SPENT = 10_000;

describe('the sessions of the console that were ended', () => {
  it('are remembered up to a number, and those of holders push no used link out', async () => {
    const sessions = createSessions({ operator: 'the-admin-key' }, [], {
      clock: Date,
      sealingKey: new Uint8Array(32),
      accessKeys: {
        find: async (key) =>
          key === '' ? undefined : { name: key, owner: key, expiresAt: Infinity, filters: [], may: ['read'] },
      },
    });
    const link = sessions.newLink();
    expect((await sessions.logIn({ link }))?.session.role).to.equal('operator');
    const cookies: string[] = [];
    for (let count = 0; count <= MOST_SPENT; count++) {
      const cookie = (await sessions.logIn({ key: `tdk_${count}` }))?.cookie ?? '';
      sessions.end(cookie);
      cookies.push(cookie);
    }
    expect(await sessions.logIn({ link })).to.equal(undefined);
    const found = [cookies[0], cookies.at(-1)].map((cookie = '') => sessions.find(cookie));
    const names = (await Promise.all(found)).map((one) => one?.holder?.name);
    expect(names).to.deep.equal([undefined, `tdk_${MOST_SPENT}`]);
  });
});
