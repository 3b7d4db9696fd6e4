import { expect } from 'chai';
import { presentSubscription } from '../../service/subscriptions/subscription';
import { subscriptionWith } from '../helpers/subscription-body';

describe('a subscription as the API shows it', () => {
  const headers = { authorization: 'Bearer key-of-the-gateway', 'x-tenant': 'acme' };
  const subscription = subscriptionWith({ protocolsettings: { headers }, types: ['com.service.etr.shred'] });
  const stored = { ...subscription, config: { ...subscription.config, secret: 'whsec_c2VjcmV0' } };

  it('has a mask for the value of every header, and no secret', () => {
    const shown = presentSubscription(stored);
    const masked = { authorization: '***', 'x-tenant': '***' };
    expect(shown).to.deep.equal({ ...subscription, protocolsettings: { method: 'POST', headers: masked } });
    expect(JSON.stringify(shown)).not.to.match(/key-of-the-gateway|acme|whsec/);
  });

  it('leaves the stored one as it is', () => {
    presentSubscription(stored);
    expect(stored.config.secret).to.equal('whsec_c2VjcmV0');
    expect(stored.protocolsettings?.headers).to.deep.equal(headers);
  });

  it('has no headers if none are stored', () => {
    const bare = subscriptionWith();
    expect(presentSubscription(bare)).to.deep.equal(bare);
  });
});
