import { expect } from 'chai';
import { tokenIdOf } from '../../service/issuance/credential';
import { tokenIdAsUint256 } from '../helpers/token-id';

describe('token id', () => {
  // Independent result: printf 'urn:uuid:0192f3c8-5a00-7000-8000-000000000001' | sha256sum
  const id = 'urn:uuid:0192f3c8-5a00-7000-8000-000000000001';
  const sha256 = 'f3952212022878a318b6a94906e40b7bdd463e58254886fc35b7dbba11923073';

  it('is the lower-case hex SHA-256 of the credential id', () => {
    expect(tokenIdOf(id)).to.equal(sha256);
  });

  it('is the same number on chain', () => {
    expect(tokenIdAsUint256(sha256).toString(16).padStart(64, '0')).to.equal(sha256);
  });
});
